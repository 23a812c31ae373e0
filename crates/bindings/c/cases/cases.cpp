// The conformance cases in C++: cases SLUICE CASES SERVICE, as in C. Each task is submitted in each way that C++ has.
#include "case.h"

#include <fstream>
#include <thread>

#include <poll.h>

#include <sluice.hpp>

using namespace std::chrono_literals;

static sluice::spec spec_of(const step &act) {
    sluice::spec spec(static_cast<std::uint16_t>(number_of(&act, "type", 0)));
    if (value_of(&act, "deadline_ns")) spec.deadline(std::chrono::nanoseconds(number_of(&act, "deadline_ns", 0)));
    if (value_of(&act, "budget_ns")) spec.within(std::chrono::nanoseconds(number_of(&act, "budget_ns", 0)));
    return spec;
}

static sluice::outcome blocking(sluice::client &client, const sluice::spec &spec, std::string_view task) {
    return client.submit(spec, task);
}

static sluice::outcome trying(sluice::client &client, const sluice::spec &spec, std::string_view task) {
    for (;;) {
        if (auto outcome = client.try_submit(spec, task)) return std::move(*outcome);
    }
}

static sluice::outcome at_a_queue(sluice::client &client, const sluice::spec &spec, std::string_view task) {
    sluice::queue queue;
    std::vector<sluice::outcome> outcomes;
    queue.submit(client, 7, spec, task);
    if (queue.wait(outcomes, 8) != 1 || outcomes[0].tag() != 7) die("a queue gives another task");
    return std::move(outcomes[0]);
}

static sluice::outcome with_poll(sluice::client &client, const sluice::spec &spec, std::string_view task) {
    sluice::queue queue;
    std::vector<sluice::outcome> outcomes;
    pollfd poll_of = {queue.fd(), POLLIN, 0};
    while (!queue.try_submit(client, 7, spec, task)) std::this_thread::yield();
    if (poll(&poll_of, 1, -1) != 1) die("poll does not find the queue");
    if (queue.take(outcomes, 8) != 1 || poll(&poll_of, 1, 0) != 0) die("an empty queue is readable");
    return std::move(outcomes[0]);
}

static const struct {
    const char *name;
    sluice::outcome (*submit)(sluice::client &, const sluice::spec &, std::string_view);
} WAYS[] = {{"blocking", blocking}, {"trying", trying}, {"at a queue", at_a_queue}, {"with poll", with_poll}};

static const char *kind_word(sluice_kind kind) {
    static const char *const words[] = {"none", "reply", "failed", "refused", "unknown"};
    return words[kind];
}

static void submit(const test_case &of, sluice::client &client) {
    std::size_t length = 0;
    std::unique_ptr<char, decltype(&free)> bytes(task_of(&of.act, &length), free);
    sluice::spec spec = spec_of(of.act);
    std::optional<sluice::labels> labels;
    if (const value *label = value_of(&of.act, "label")) {
        labels.emplace(std::initializer_list<const char *>{std::string(label->bytes, label->length).c_str()});
        spec.needing(*labels);
    }
    for (const auto &way : WAYS) {
        try {
            auto outcome = way.submit(client, spec, {bytes.get(), length});
            expect(&of, way.name, kind_word(outcome.kind()), sluice_why_text(static_cast<int>(outcome.why())),
                   outcome.text().data(), outcome.text().size());
        } catch (const sluice::error &why) {
            expect(&of, way.name, "error", sluice_status_text(static_cast<int>(why.status())), "", 0);
        }
    }
}

// The process of a worker; 0 if none answers.
static pid_t worker_id(sluice::client &client) {
    auto outcome = client.submit(14, "");
    return outcome ? static_cast<pid_t>(std::stol(std::string(outcome.text()))) : 0;
}

// One thread submits, and waits for room; another one takes what has ended.
static void burst(const test_case &of, sluice::client &client) {
    const unsigned long count = number_of(&of.act, "count", 0);
    const std::size_t length = number_of(&of.act, "fill", 0);
    pid_t dies = value_of(&of.act, "kill") ? worker_id(client) : 0;
    if (value_of(&of.act, "kill") && dies == 0) die("%s: no worker says who it is", of.name);
    sluice::queue queue;
    std::thread submitter([&] {
        std::string task(length, '\0');
        const sluice::spec spec = spec_of(of.act);
        for (unsigned long number = 0; number < count; ++number) {
            task_of_burst(number, task.data(), length, 0);
            queue.submit(client, number, spec, task);
        }
    });
    std::vector<sluice::outcome> outcomes;
    std::vector<int> ends(count);
    std::string right(length, '\0');
    unsigned long ended = 0, replies = 0;
    while (ended < count) {
        ended += queue.wait(outcomes, 64, 1s);
        for (const auto &outcome : outcomes) {
            if (outcome.tag() >= count || ends[outcome.tag()]++ > 0) die("%s: a task ended twice", of.name);
            task_of_burst(static_cast<unsigned long>(outcome.tag()), right.data(), length, 1);
            if (outcome.kind() == SLUICE_KIND_FAILED || (outcome && outcome.text() != right)) {
                die("%s: a wrong reply", of.name);
            }
            replies += outcome ? 1 : 0;
        }
        if (dies != 0 && ended >= count / 3) {
            replace_worker(dies);
            dies = 0;
        }
    }
    submitter.join();
    if (replies < number_of(&of.expected, "replies_least", count)) die("%s: %lu replies", of.name, replies);
}

static void run(const char *sluice_program, const std::string &folder, const char *service) {
    std::optional<sluice::client> client;
    std::ifstream file(folder + "/cases.txt");
    if (!file) die("there is no cases.txt in %s", folder.c_str());
    unsigned done = 0;
    test_case of;
    for (std::string line; std::getline(file, line);) {
        if (!parse_case(line.data(), &of)) continue;
        const std::string_view act = of.act.word;
        if (act == "rack") {
            client.reset();
            rack_end();
            start_rack(sluice_program, folder.c_str(), service, &of.act);
            // The deadline is one that a busy machine meets.
            client.emplace(sluice::options{
                {"controller", rack_of_cases.controller}, {"patience", "60s"}, {"deadline", "60s"}});
            for (unsigned tries = 0; !all_have_answered(worker_id(*client), tries); ++tries) continue;
        } else if (!client) die("%s: there is no rack", of.name);
        else if (act == "submit") submit(of, *client);
        else if (act == "burst") burst(of, *client);
        else if (act == "close") client->close();
        else die("%s: %s is unknown", of.name, of.act.word);
        ++done;
    }
    printf("%u cases hold\n", done);
}

int main(int argc, char **argv) {
    if (argc != 4) die("usage: cases SLUICE CASES SERVICE");
    try {
        run(argv[1], argv[2], argv[3]);
    } catch (const std::exception &why) {
        die("%s", why.what());
    }
    rack_end();
    return 0;
}
