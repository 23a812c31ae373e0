// RocksDB behind Sluice, by its own C++ API: point reads (type 1) and scans (type 2), in the bytes that docs/manual/services.md
// lists. rocksdb_service FOLDER [flags of a worker]; the database exists, and is opened read-only.
#include <array>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <sluice.hpp>

namespace {

constexpr std::size_t KEY_BYTES = 64;
constexpr std::uint32_t SCAN_ROWS_MAX = 100000;
constexpr std::uint32_t SEND_ROWS = 1u << 31;
constexpr std::size_t MISSING = 0xffff;

// Numbers are big-endian.
template <std::size_t Bytes> std::string number(std::uint64_t value) {
    std::string text(Bytes, '\0');
    for (std::size_t at = 0; at < Bytes; ++at) text[Bytes - 1 - at] = static_cast<char>(value >> (8 * at));
    return text;
}

std::uint64_t word(std::string_view bytes) {
    std::uint64_t value = 0;
    for (unsigned char byte : bytes) value = value << 8 | byte;
    return value;
}

// A fingerprint of the strings that were read.
class digest {
public:
    void add(rocksdb::Slice of) {
        fold(of.size());
        std::string_view left(of.data(), of.size());
        for (; left.size() >= 8; left.remove_prefix(8)) fold(word(left.substr(0, 8)));
        if (!left.empty()) fold(word(left) << (8 * (8 - left.size())));
    }
    std::uint64_t value() const { return value_; }

private:
    void fold(std::uint64_t next) { value_ = ((value_ << 29 | value_ >> 35) ^ next) * 0x9e3779b97f4a7c15; }
    std::uint64_t value_ = 0;
};

// States how long a task will go on, from the time that earlier keys took: for early tokens.
class pace {
public:
    void step(const sluice::task &of, std::size_t left) {
        if (left % 16 == 0) of.left(per_key_ * static_cast<std::int64_t>(left));
    }
    void ended(std::chrono::steady_clock::time_point begun, std::size_t keys) {
        const auto took = std::chrono::steady_clock::now() - begun;
        if (keys > 0) per_key_ = (per_key_ * 7 + std::chrono::nanoseconds(took) / static_cast<std::int64_t>(keys)) / 8;
    }

private:
    std::chrono::nanoseconds per_key_{0};
};

void check(const rocksdb::Status &status) {
    if (!status.ok()) throw std::runtime_error("RocksDB: " + status.ToString());
}

class service {
public:
    explicit service(const std::string &folder) {
        rocksdb::Options options;
        rocksdb::DB *opened = nullptr;
        check(rocksdb::DB::OpenForReadOnly(options, folder, &opened));
        db_.reset(opened);
    }

    void get(const sluice::task &of, sluice::reply &to) {
        const std::string_view keys = of.text();
        if (keys.empty() || keys.size() % KEY_BYTES != 0) {
            throw std::runtime_error("a GET carries keys of 64 bytes each, at least one; this one has "
                                     + std::to_string(keys.size()) + " bytes");
        }
        const auto begun = std::chrono::steady_clock::now();
        const std::size_t count = keys.size() / KEY_BYTES;
        std::uint64_t found = 0;
        bool is_full = false;
        digest read;
        values_.clear();
        for (std::size_t at = 0; at < count; ++at) {
            gets_.step(of, count - at);
            rocksdb::PinnableSlice value;
            const rocksdb::Slice key(keys.data() + at * KEY_BYTES, KEY_BYTES);
            const auto status = db_->Get({}, db_->DefaultColumnFamily(), key, &value);
            if (!status.IsNotFound()) check(status);
            const std::size_t length = status.ok() ? value.size() : MISSING;
            const std::size_t bytes = status.ok() ? value.size() : 0;
            if (status.ok()) {
                found += 1;
                read.add(value);
            }
            // Only a missing key has the length of one.
            is_full = is_full || (status.ok() && length >= MISSING);
            is_full = is_full || 10 + values_.size() + 2 + bytes > of.packet_max();
            if (!is_full) values_.append(number<2>(length)).append(value.data(), bytes);
        }
        gets_.ended(begun, count);
        to.write(number<2>(std::min<std::uint64_t>(found, MISSING)) + number<8>(read.value()));
        to.write(values_);
    }

    void scan(const sluice::task &of, sluice::reply &to) {
        const std::string_view request = of.text();
        if (request.size() < 4) {
            throw std::runtime_error("a SCAN takes at least 4 bytes, not " + std::to_string(request.size()));
        }
        const auto stated = static_cast<std::uint32_t>(word(request.substr(0, 4)));
        const std::uint32_t wanted = stated & ~SEND_ROWS;
        if (wanted > SCAN_ROWS_MAX) {
            throw std::runtime_error("a SCAN reads at most 100000 rows, not " + std::to_string(wanted));
        }
        const auto begun = std::chrono::steady_clock::now();
        std::uint32_t rows = 0;
        std::uint64_t bytes = 0;
        bool has_room = (stated & SEND_ROWS) != 0;
        digest read;
        values_.clear();
        std::unique_ptr<rocksdb::Iterator> each(db_->NewIterator({}));
        for (each->Seek({request.data() + 4, request.size() - 4}); rows < wanted && each->Valid(); each->Next()) {
            scans_.step(of, wanted - rows);
            const rocksdb::Slice key = each->key(), value = each->value();
            read.add(key);
            read.add(value);
            const std::size_t row = 4 + key.size() + value.size();
            has_room = has_room && key.size() <= MISSING && value.size() <= MISSING;
            has_room = has_room && 20 + values_.size() + row <= of.reply_max();
            if (has_room) {
                values_.append(number<2>(key.size())).append(key.data(), key.size());
                values_.append(number<2>(value.size())).append(value.data(), value.size());
            }
            rows += 1;
            bytes += key.size() + value.size();
        }
        check(each->status());
        scans_.ended(begun, rows);
        to.write(number<4>(rows) + number<8>(bytes) + number<8>(read.value()));
        to.write(values_);
    }

private:
    std::unique_ptr<rocksdb::DB> db_;
    std::string values_;
    pace gets_, scans_;
};

} // namespace

int main(int argc, char **argv) try {
    if (argc < 2) {
        std::cerr << "usage: rocksdb_service FOLDER [flags of a worker]\n";
        return 2;
    }
    service rocks(argv[1]);
    // The rest are the worker's flags.
    argv[1] = argv[0];
    sluice::services services;
    services.on(1, [&](const sluice::task &of, sluice::reply &to) { rocks.get(of, to); });
    services.on(2, [&](const sluice::task &of, sluice::reply &to) { rocks.scan(of, to); });
    return services.run(argc - 1, argv + 1);
} catch (const std::exception &why) {
    std::cerr << why.what() << '\n';
    return 2;
}
