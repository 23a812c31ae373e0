// The conformance service in C++; README.md of ../cases says what each type does.
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

#include <sluice.hpp>

int main(int argc, char **argv) {
    using sluice::reply;
    using sluice::task;
    sluice::services services;
    services.on(9, [](const task &of, reply &to) { to.write(std::string(of.text().rbegin(), of.text().rend())); });
    services.on(10, [](const task &of, reply &) { throw std::runtime_error("told to fail: " + std::string(of.text())); });
    services.on(11, [](const task &of, reply &to) {
        std::this_thread::sleep_for(std::chrono::milliseconds(std::stoul(std::string(of.text()))));
        to.write("slept");
    });
    services.on(12, [](const task &of, reply &to) { to.write(std::string(std::stoul(std::string(of.text())), 'x')); });
    services.on(13, [](const task &, reply &) { throw 7; });
    services.on(14, [](const task &, reply &to) { to.write(std::to_string(getpid())); });
    return services.run(argc, argv);
}
