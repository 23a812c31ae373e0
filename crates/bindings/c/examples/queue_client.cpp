// Many tasks under way from one thread: queue_client CONTROLLER COUNT has numbers reversed, and prints how many came back.
#include <iostream>
#include <string>

#include <sluice.hpp>

int main(int argc, char **argv) try {
    if (argc != 3) {
        std::cerr << "usage: queue_client CONTROLLER COUNT\n";
        return 2;
    }
    sluice::client client{std::string(argv[1])};
    sluice::queue queue;
    std::vector<sluice::outcome> outcomes;
    const std::uint64_t count = std::stoul(argv[2]);
    std::uint64_t sent = 0, ended = 0, replied = 0;
    while (ended < count) {
        // Submits until there is no room, then takes what has ended.
        while (sent < count && queue.try_submit(client, sent, 9, std::to_string(sent))) ++sent;
        ended += queue.wait(outcomes, 32, std::chrono::milliseconds(100));
        for (const auto &outcome : outcomes) {
            if (outcome) ++replied;
            else std::cerr << outcome.tag() << ": " << outcome.line() << '\n';
        }
    }
    client.close();
    std::cout << replied << " of " << count << '\n';
    return replied == count ? 0 : 1;
} catch (const std::exception &why) {
    std::cerr << why.what() << '\n';
    return 1;
}
