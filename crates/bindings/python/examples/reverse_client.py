"""A whole client: has words reversed by whoever serves type 9. Run it with the controller's address and words."""

import sys

import sluice


def main(address: str, words: list[str]) -> int:
    with sluice.connect(address) as client:
        for word in words:
            try:
                print(client.submit(9, word.encode(), deadline=5.0).bytes.decode())
            except sluice.Error as why:
                print(why, file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
