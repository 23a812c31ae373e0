/* Sluice for C++: sluice.h with owners that free what they own, and services as lambdas. C++17; with C++20
 * bytes are std::span.
 *
 * What becomes of a task is a value, a sluice::outcome. Exceptions (sluice::error) tell of what a program
 * cannot go on with: a rack that is not there, a wrong option, a task that is too long, a closed client.
 * All owners are move only. docs/manual/c.md explains more.
 */
#ifndef SLUICE_HPP
#define SLUICE_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if __cplusplus >= 202002L
#include <span>
#endif

#include "sluice.h"

namespace sluice {

#if __cplusplus >= 202002L
inline namespace cxx20 {
/* Bytes that somebody else owns. */
using bytes = std::span<const std::uint8_t>;
#else
inline namespace cxx17 {
/* Bytes that somebody else owns. */
class bytes {
public:
    constexpr bytes() noexcept = default;
    constexpr bytes(const std::uint8_t *data, std::size_t size) noexcept : data_(data), size_(size) {}
    bytes(const std::vector<std::uint8_t> &of) noexcept : data_(of.data()), size_(of.size()) {}

    constexpr const std::uint8_t *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr const std::uint8_t *begin() const noexcept { return data_; }
    constexpr const std::uint8_t *end() const noexcept { return data_ + size_; }
    constexpr const std::uint8_t &operator[](std::size_t at) const noexcept { return data_[at]; }
    bytes subspan(std::size_t from) const noexcept { return {data_ + from, size_ - from}; }
    bytes first(std::size_t count) const noexcept { return {data_, count}; }

private:
    const std::uint8_t *data_ = nullptr;
    std::size_t size_ = 0;
};
#endif

/* The bytes of a text. */
inline bytes of_text(std::string_view text) noexcept {
    return bytes(reinterpret_cast<const std::uint8_t *>(text.data()), text.size());
}

/* These bytes, as a text. */
inline std::string_view as_text(bytes of) noexcept {
    return {reinterpret_cast<const char *>(of.data()), of.size()};
}

/* Why a call did not do what it was made for: a status, and a line that says what to do. */
class error : public std::runtime_error {
public:
    explicit error(sluice_status status) : std::runtime_error(sluice_last_error()), status_(status) {}
    sluice_status status() const noexcept { return status_; }

private:
    sluice_status status_;
};

/* Throws if a call did not go well. */
inline void check(sluice_status status) {
    if (status != SLUICE_OK) throw error(status);
}

/* The owner of a handle. */
template <typename Handle, sluice_status (*Free)(Handle)> class owner {
public:
    owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, Handle{0})) {}
    /* Frees what it owned before. */
    owner &operator=(owner &&other) noexcept {
        owner taken(std::move(other));
        std::swap(handle_, taken.handle_);
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() {
        if (handle_.id != 0) Free(handle_);
    }

    /* The handle, for functions of sluice.h. */
    Handle handle() const noexcept { return handle_; }

protected:
    owner() noexcept = default;
    Handle handle_{0};
};

/* Options of a client or a worker: see sluice_options_set() for their keys. */
class options : public owner<sluice_options, sluice_options_free> {
public:
    options() { check(sluice_options_new(&handle_)); }
    options(std::initializer_list<std::pair<const char *, std::string>> all) : options() {
        for (const auto &[key, value] : all) set(key, value);
    }
    options &set(const char *key, const std::string &value) {
        check(sluice_options_set(handle_, key, value.c_str()));
        return *this;
    }
};

/* Labels that a task needs of its worker. */
class labels : public owner<sluice_labels, sluice_labels_free> {
public:
    labels(std::initializer_list<const char *> names) {
        check(sluice_labels_new(names.begin(), names.size(), &handle_));
    }
};

/* What a task is: spec(9).within(200us).deadline(1s). A time of 0 is the shortest one, not none. */
class spec {
public:
    spec(std::uint16_t type) noexcept : raw_() { raw_.type = type; }

    /* The task ends so long after it was submitted at the latest. */
    spec &deadline(std::chrono::nanoseconds span) noexcept {
        raw_.deadline_ns = at_least_one(span);
        return *this;
    }
    /* The task is worth beginning for so long. */
    spec &within(std::chrono::nanoseconds budget) noexcept {
        raw_.budget_ns = at_least_one(budget);
        return *this;
    }
    /* The task is of this class; class 0 goes first. */
    spec &of_class(std::uint8_t number) noexcept {
        raw_.urgency_is = SLUICE_URGENCY_CLASS;
        raw_.urgency = number;
        return *this;
    }
    /* The expected service time. */
    spec &sized(std::chrono::nanoseconds work) noexcept {
        raw_.urgency_is = SLUICE_URGENCY_WORK;
        raw_.urgency = at_least_one(work);
        return *this;
    }
    /* The task needs a worker with these; they must live until it was submitted. */
    spec &needing(const labels &what) noexcept {
        raw_.labels = what.handle();
        return *this;
    }
    const sluice_spec *raw() const noexcept { return &raw_; }

private:
    static std::uint64_t at_least_one(std::chrono::nanoseconds span) noexcept {
        return span.count() < 1 ? 1 : static_cast<std::uint64_t>(span.count());
    }
    sluice_spec raw_;
};

/* How a task ended. Its bytes live as long as it does. */
class outcome {
public:
    outcome() noexcept : raw_() {}
    /* Takes over what a function of sluice.h gave. */
    explicit outcome(const sluice_outcome &raw) noexcept : raw_(raw) {}
    outcome(outcome &&other) noexcept : raw_(std::exchange(other.raw_, sluice_outcome())) {}
    outcome &operator=(outcome &&other) noexcept {
        outcome taken(std::move(other));
        std::swap(raw_, taken.raw_);
        return *this;
    }
    outcome(const outcome &) = delete;
    outcome &operator=(const outcome &) = delete;
    ~outcome() {
        if (raw_.kept.id != 0) sluice_outcome_free(&raw_);
    }

    /* Whether a worker ran the task, and its service did not fail. */
    explicit operator bool() const noexcept { return raw_.kind == SLUICE_KIND_REPLY; }
    sluice_kind kind() const noexcept { return raw_.kind; }
    sluice_why why() const noexcept { return raw_.why; }
    /* The reply's bytes, or the text of a service that failed. */
    sluice::bytes bytes() const noexcept { return {raw_.bytes, raw_.length}; }
    std::string_view text() const noexcept { return as_text(bytes()); }
    std::uint64_t tag() const noexcept { return raw_.tag; }
    std::uint32_t worker() const noexcept { return raw_.worker; }
    std::uint32_t attempts() const noexcept { return raw_.attempts; }
    std::chrono::nanoseconds switch_wait() const noexcept { return span(raw_.switch_wait_ns); }
    std::chrono::nanoseconds worker_wait() const noexcept { return span(raw_.worker_wait_ns); }
    std::chrono::nanoseconds service_time() const noexcept { return span(raw_.service_ns); }
    /* If more tasks came than the slice can serve: another one has a chance after so long. */
    std::chrono::nanoseconds retry_after() const noexcept { return span(raw_.retry_after_ns); }
    /* A line for people, with what to do next. */
    std::string line() const {
        std::string text(sluice_outcome_text(&raw_, nullptr, 0), '\0');
        sluice_outcome_text(&raw_, text.data(), text.size() + 1);
        return text;
    }

private:
    static std::chrono::nanoseconds span(std::uint64_t ns) noexcept {
        return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(ns));
    }
    sluice_outcome raw_;
};

/* A registered client. Any number of threads may use it. */
class client : public owner<sluice_client, sluice_client_free> {
public:
    /* Registers, and waits for that. */
    explicit client(const options &of) { check(sluice_client_connect(of.handle(), &handle_)); }
    /* A client of this controller, with the defaults. */
    explicit client(const std::string &controller) : client(options{{"controller", controller}}) {}

    /* Submits a task, waits for room first, and waits until it ends. */
    outcome submit(const spec &of, bytes task) {
        sluice_outcome raw;
        check(sluice_submit(handle_, of.raw(), task.data(), task.size(), nullptr, 0, &raw));
        return outcome(raw);
    }
    outcome submit(const spec &of, std::string_view task) { return submit(of, of_text(task)); }

    /* Like submit(), but returns nothing if there is no room for the task now. */
    std::optional<outcome> try_submit(const spec &of, bytes task) {
        sluice_outcome raw;
        auto status = sluice_try_submit(handle_, of.raw(), task.data(), task.size(), nullptr, 0, &raw);
        if (status == SLUICE_BUSY) return std::nullopt;
        check(status);
        return outcome(raw);
    }
    std::optional<outcome> try_submit(const spec &of, std::string_view task) {
        return try_submit(of, of_text(task));
    }

    /* The number of a type by its name in the rack's plan. */
    std::uint16_t type(const char *name) const {
        std::uint16_t number = 0;
        check(sluice_client_type(handle_, name, &number));
        return number;
    }

    /* Takes no more tasks, waits until each has its outcome, and ends the registration. Without it, the end
     * of this object ends its tasks as unknown. */
    void close() { check(sluice_client_close(handle_)); }
};

/* A queue of outcomes: for programs with many tasks under way. */
class queue : public owner<sluice_queue, sluice_queue_free> {
public:
    queue() { check(sluice_queue_new(&handle_)); }

    /* Submits a task whose outcome comes here, under a tag; waits for room. */
    void submit(client &by, std::uint64_t tag, const spec &of, bytes task) {
        check(sluice_queue_submit(by.handle(), handle_, tag, of.raw(), task.data(), task.size()));
    }
    void submit(client &by, std::uint64_t tag, const spec &of, std::string_view task) {
        submit(by, tag, of, of_text(task));
    }

    /* Like submit(), but returns false if there is no room for the task now. */
    bool try_submit(client &by, std::uint64_t tag, const spec &of, bytes task) {
        auto status = sluice_queue_try_submit(by.handle(), handle_, tag, of.raw(), task.data(), task.size());
        if (status != SLUICE_BUSY) check(status);
        return status == SLUICE_OK;
    }
    bool try_submit(client &by, std::uint64_t tag, const spec &of, std::string_view task) {
        return try_submit(by, tag, of, of_text(task));
    }

    /* Replaces what is in `into` by up to `most` outcomes that are there, and 32 at once. Returns how many. */
    std::size_t take(std::vector<outcome> &into, std::size_t most) {
        return fill(into, most, [this](sluice_outcome *at, std::size_t room, std::size_t *count) {
            return sluice_queue_take(handle_, at, room, count);
        });
    }

    /* Like take(), but waits for the first one; returns 0 if none came in `longest`. */
    std::size_t wait(std::vector<outcome> &into, std::size_t most, std::chrono::nanoseconds longest) {
        auto ns = longest.count() < 0 ? 0 : static_cast<std::uint64_t>(longest.count());
        return wait_ns(into, most, ns);
    }
    /* Like take(), but waits for the first one. */
    std::size_t wait(std::vector<outcome> &into, std::size_t most) {
        return wait_ns(into, most, SLUICE_FOREVER);
    }

    /* Readable, for poll() and epoll, while an outcome is here. Do not read or close it. */
    int fd() const {
        int number = -1;
        check(sluice_queue_fd(handle_, &number));
        return number;
    }

private:
    std::size_t wait_ns(std::vector<outcome> &into, std::size_t most, std::uint64_t ns) {
        return fill(into, most, [this, ns](sluice_outcome *at, std::size_t room, std::size_t *count) {
            return sluice_queue_wait(handle_, at, room, ns, count);
        });
    }

    template <typename Take> static std::size_t fill(std::vector<outcome> &into, std::size_t most, Take take) {
        constexpr std::size_t chunk = 32;
        sluice_outcome raw[chunk];
        into.clear();
        std::size_t count = 0;
        into.reserve(std::min(most, chunk));
        auto status = take(raw, std::min(most, chunk), &count);
        for (std::size_t at = 0; at < count; ++at) into.emplace_back(raw[at]);
        check(status);
        return count;
    }
};

/* A task, as its service sees it. */
class task {
public:
    task(const sluice_task *raw, sluice_reply reply) noexcept : raw_(raw), reply_(reply) {}
    sluice::bytes bytes() const noexcept { return {raw_->bytes, raw_->length}; }
    std::string_view text() const noexcept { return as_text(bytes()); }
    std::uint16_t type() const noexcept { return raw_->type; }
    /* The client's life, and the task's number in it: a repeat has the same. */
    std::uint64_t client() const noexcept { return raw_->client; }
    std::uint32_t number() const noexcept { return raw_->number; }
    std::size_t reply_max() const noexcept { return raw_->reply_max; }
    /* The longest reply that takes no further round trip. */
    std::size_t packet_max() const noexcept { return raw_->packet_max; }
    /* States how much time the task still needs, before dilation: for early tokens. */
    void left(std::chrono::nanoseconds span) const { check(sluice_task_left(reply_, ns(span))); }
    /* Keeps the worker busy for so long after the service returns. */
    void hold(std::chrono::nanoseconds span) const { check(sluice_task_hold(reply_, ns(span))); }

private:
    static std::uint64_t ns(std::chrono::nanoseconds span) noexcept {
        return span.count() < 0 ? 0 : static_cast<std::uint64_t>(span.count());
    }
    const sluice_task *raw_;
    sluice_reply reply_;
};

/* The reply to a task, until its service returns. */
class reply {
public:
    explicit reply(sluice_reply raw) noexcept : raw_(raw) {}
    /* Appends bytes. A reply that grows over SLUICE_BYTES_MAX fails the task; this throws then, and on any
     * other thread than the service's. */
    void write(bytes of) { check(sluice_reply_write(raw_, of.data(), of.size())); }
    void write(std::string_view text) { write(of_text(text)); }

private:
    sluice_reply raw_;
};

/* The code for tasks of some types, each a function of a task and its reply. An exception that leaves it
 * fails the task with its text. */
class services {
public:
    using function = std::function<void(const task &, reply &)>;

    services() = default;
    services(std::uint16_t type, function serve) { on(type, std::move(serve)); }

    services &on(std::uint16_t type, function serve) {
        functions_.push_back(std::make_unique<function>(std::move(serve)));
        list_.push_back(sluice_service{type, &services::serve, functions_.back().get()});
        return *this;
    }

    /* The whole main of a service: reads the flags that all workers share, serves until SIGTERM or SIGINT,
     * drains, and returns the exit code. */
    int run(int argc, char *const *argv) const {
        return sluice_run_service(argc, argv, list_.data(), list_.size());
    }

    const std::vector<sluice_service> &list() const noexcept { return list_; }

private:
    static int serve(void *context, const sluice_task *of, sluice_reply to) noexcept {
        try {
            reply answer(to);
            (*static_cast<function *>(context))(task(of, to), answer);
            return 0;
        } catch (const std::exception &why) {
            return sluice_reply_fail(to, why.what());
        } catch (...) {
            return sluice_reply_fail(to, "an exception that is no std::exception left the service");
        }
    }

    std::vector<std::unique_ptr<function>> functions_;
    std::vector<sluice_service> list_;
};

/* A worker in a thread of its own. Its end ends the worker at once. */
class worker {
public:
    worker(const options &of, services what) : services_(std::make_unique<services>(std::move(what))) {
        const auto &list = services_->list();
        sluice_worker handle{0};
        check(sluice_worker_start(of.handle(), list.data(), list.size(), &handle));
        handle_.set(handle);
    }
    worker(worker &&) noexcept = default;
    /* The worker that was here ends before its services do. */
    worker &operator=(worker &&other) noexcept {
        handle_ = std::move(other.handle_);
        services_ = std::move(other.services_);
        return *this;
    }

    /* The handle, for functions of sluice.h. */
    sluice_worker handle() const noexcept { return handle_.handle(); }
    /* Takes no more tasks, finishes those that it has, and ends; a second call ends it at once. */
    void stop() { check(sluice_worker_stop(handle())); }
    /* Waits until the worker has ended; throws if it did not end well. */
    void wait() { check(sluice_worker_wait(handle())); }

private:
    struct worker_handle : owner<sluice_worker, sluice_worker_free> {
        void set(sluice_worker handle) noexcept { handle_ = handle; }
    };
    /* Freed after the worker, which calls them. */
    std::unique_ptr<services> services_;
    worker_handle handle_;
};

} // namespace cxx17 or cxx20
} // namespace sluice

#endif
