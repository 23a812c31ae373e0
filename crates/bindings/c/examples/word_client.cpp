// The client of reverse_client.c in C++. word_client CONTROLLER WORD
#include <iostream>

#include <sluice.hpp>

int main(int argc, char **argv) try {
    if (argc != 3) {
        std::cerr << "usage: word_client CONTROLLER WORD\n";
        return 2;
    }
    sluice::client client{std::string(argv[1])};
    sluice::outcome outcome = client.submit(9, argv[2]);
    if (outcome) std::cout << outcome.text() << '\n';
    else std::cerr << outcome.line() << '\n';
    client.close();
    return outcome ? 0 : 1;
} catch (const sluice::error &why) {
    std::cerr << why.what() << '\n';
    return 1;
}
