"""A whole service: answers each task of type 9 with its bytes in reverse. Run it with --controller ADDRESS."""

import sluice


@sluice.service(9)
def reverse(task: bytes) -> bytes:
    return task[::-1]


if __name__ == "__main__":
    sluice.run_service()
