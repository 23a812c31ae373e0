# The commands of this project. Each installs what it needs.
# `make TARGET ROCKSDB_COMPILE=1` builds the bundled RocksDB instead of linking to the system's.
# `make bench BLESS=1` makes the present instruction counts the bounds.

.PHONY: help demo demo-xdp demo-bmv2 p4 test upgrade fresh bench decisions soak reproduce planted-bugs mutants versus pacer packages book audit

help:
	@echo 'make demo    a rack on this machine: load; a worker, a server and the switch are killed; results in out/demo'
	@echo 'make demo-xdp  the same around a switch in the kernel (XDP), as root'
	@echo 'make demo-bmv2  the same around the P4 program on BMv2, as root; P4_TOOLS names the folder of p4c-bm2-ss and simple_switch'
	@echo 'make p4      the P4 programs under the P4 tools (P4_TOOLS): vectors on BMv2, fit of a Tofino; writes targets/p4/receipt.json'
	@echo 'make test    everything that must hold before a commit lands'
	@echo 'make upgrade  each process of a rack is replaced under load by an earlier build and back (UPGRADE=COMMIT; the last tag)'
	@echo 'make fresh   make demo and make test on bare Debian trees, as root; hours (FRESH="--tree llvm --only demo" for a part)'
	@echo 'make bench   what a decision, a packet and a task cost; ratios to a baseline in the same run'
	@echo 'make decisions  what a socket server, the UDP switch and XDP decide a second, how fast and for how much of a core; as root'
	@echo 'make soak    fuzzing, new cases of property tests and fault runs until you stop them (SECONDS_EACH=600 per fuzz target)'
	@echo 'make reproduce  the papers'\'' figures in the simulator, with verdicts; pages in out/reproduce'
	@echo 'make planted-bugs  plants deliberate bugs and counts the fault runs until each is found'
	@echo 'make mutants  changes the crates without I/O in small ways and says which changes no test notices; hours, and it goes on where it was stopped'
	@echo 'make versus  Rain against what stands in front of services today (nginx, SO_REUSEPORT), on one trace; eight minutes'
	@echo 'make pacer   how late the pacer'\''s frames leave by each way of waiting, in a kernel with a fair queue that it starts as a process'
	@echo 'make packages  a Debian package, a container image, an SBOM; tries each on a bare Debian tree, as root; files in out/packages'
	@echo 'make book    all pages as a book, with the interfaces of each language; out/book/html/index.html'
	@echo 'make audit   known vulnerabilities among the dependencies; needs the network'

demo:
	@scripts/setup
	@scripts/demo

demo-xdp:
	@scripts/setup --xdp
	@scripts/demo --io xdp

demo-bmv2:
	@scripts/setup
	@scripts/demo --io bmv2 --dilate 100 --rate 100

p4:
	@scripts/setup
	@cargo run --quiet --locked -p sluice-receipt

test:
	@scripts/setup --test
	@scripts/test

upgrade:
	@scripts/setup --test
	@scripts/upgrade-from $(UPGRADE)

fresh:
	@scripts/fresh $(FRESH)

bench:
	@scripts/setup
	@scripts/bench $(PARTS)

decisions:
	@scripts/setup --xdp
	@scripts/bench decisions

soak:
	@scripts/setup
	@scripts/soak

reproduce:
	@scripts/setup
	@scripts/reproduce

planted-bugs:
	@scripts/setup
	@scripts/planted-bugs
	@scripts/planted-bugs-fabric

mutants:
	@scripts/setup
	@scripts/mutants

versus:
	@scripts/setup --versus
	@scripts/versus

pacer:
	@scripts/setup --pacer
	@scripts/pacer

packages:
	@scripts/setup --packages
	@scripts/packages $(PACKAGES)

book:
	@scripts/setup
	@scripts/book

audit:
	@scripts/setup
	@scripts/audit
