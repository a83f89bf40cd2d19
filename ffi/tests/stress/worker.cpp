// The worker in C++; page.h has the rules.

#include "page.h"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <random>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <sprag.hpp>

namespace {

using word = std::atomic<std::uint64_t>;
static_assert(sizeof(word) == 8 && word::is_always_lock_free);

struct broken {
    std::string rule;
};

void hold_to(bool rule, const std::string &what) {
    if (!rule)
        throw broken{what};
}

class worker {
  public:
    worker(const std::string &url, word *page, std::uint64_t seat, std::uint64_t id)
        : page_(page), mine_(page + SEAT + seat * SEAT_WORDS), id_(id), random_(id) {
        const auto space = sprag::space::open(url.c_str()).value();
        for (int i = 0; i < LOCKS; i++) {
            const std::string name = "lock " + std::to_string(i);
            locks_.push_back(space.lock(name).value());
            fences_.push_back(space.fence(name).value());
        }
        pair_ = space.locks({"lock 0", "lock 1"}).value();
        semaphore_ = space.semaphore(SEMAPHORE_NAME, PERMITS).value();
        few_ = space.limiter(FEW_NAME, FEW_LIMIT).value();
        rate_ = space.limiter(RATE_NAME, RATE_LIMIT).value();
        counter_ = space.counter(COUNTER_NAME).value();
    }

    void work() {
        while (page_[STOP] == 0)
            switch (one_of(6)) {
            case 0:
                alone();
                break;
            case 1:
                beside_others();
                break;
            case 2:
                two_at_once();
                break;
            case 3:
                with_permits();
                break;
            case 4:
                check_limits();
                break;
            default:
                (void)counter_.add(1).value();
                mine_[ADDED]++;
            }
    }

  private:
    unsigned one_of(unsigned many) { return static_cast<unsigned>(random_() % many); }

    // Now and then lets others run, so that they meet what is held.
    void let_others_run() {
        if (one_of(4) == 0)
            sched_yield();
    }

    void nobody_is_inside(unsigned lock) {
        const std::uint64_t inside = page_[INSIDE + lock];
        hold_to(inside == 0 || page_[KILLED + inside] != 0, "somebody else is inside: " + std::to_string(inside));
    }

    void be_inside(unsigned lock, std::uint64_t token) {
        nobody_is_inside(lock);
        page_[INSIDE + lock] = id_;
        hold_to(token > page_[TOKEN + lock], "a token did not rise: " + std::to_string(token));
        page_[TOKEN + lock] = token;
        fences_[lock].admit(token).value();
        const std::uint64_t count = page_[COUNT + lock];
        let_others_run();
        page_[COUNT + lock] = count + 1;
        hold_to(page_[INSIDE + lock] == id_, "somebody else came inside");
        page_[INSIDE + lock] = 0;
        mine_[COUNTED + lock]++;
    }

    void alone() {
        const unsigned lock = one_of(LOCKS);
        const sprag::hold hold = locks_[lock].acquire().value();
        be_inside(lock, hold.token());
    }

    void beside_others() {
        const unsigned lock = one_of(LOCKS);
        sprag::acquire_options options;
        options.mode = sprag::mode::shared;
        auto hold = locks_[lock].acquire(options).value();
        let_others_run();
        nobody_is_inside(lock);
        hold.release().value();
        mine_[SHARED]++;
    }

    void two_at_once() {
        auto hold = pair_.acquire().value();
        const std::vector<std::uint64_t> tokens = hold.tokens().value();
        for (unsigned lock = 0; lock < 2; lock++)
            be_inside(lock, tokens[lock]);
        hold.release().value();
    }

    // What each seat has, by who sits there.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> look() {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> seats;
        for (std::uint64_t seat = 0; seat < page_[SEATS]; seat++) {
            const word *at = page_ + SEAT + seat * SEAT_WORDS;
            const std::uint64_t id = at[SEAT_ID];
            seats.emplace_back(id, at[HAS]);
        }
        return seats;
    }

    void with_permits() {
        const std::uint32_t permits = 1 + one_of(2);
        const std::uint64_t used = mine_[HAS] / 256 + 1;
        auto hold = semaphore_.acquire(permits).value();
        mine_[HAS] = used * 256 + permits;
        let_others_run();
        auto has = look(), again = look();
        std::uint64_t sum = 0;
        for (std::size_t seat = 0; seat < has.size(); seat++) {
            if (page_[KILLED + has[seat].first] != 0)
                has[seat].second = again[seat].second = 0;
            sum += has[seat].second % 256;
        }
        if (has == again) {
            hold_to(sum <= PERMITS, "more permits are out than there are: " + std::to_string(sum));
            mine_[SNAPSHOTS]++;
        }
        mine_[HAS] = used * 256;
        hold.release().value();
    }

    void check_limits() {
        if (few_.allow(KEY).value())
            mine_[FEW_ADMITTED]++;
        if (rate_.allow(KEY).value())
            mine_[RATE_ADMITTED]++;
    }

    word *page_, *mine_;
    std::uint64_t id_;
    std::minstd_rand random_;
    std::vector<sprag::lock> locks_;
    std::vector<sprag::fence> fences_;
    sprag::lock pair_;
    sprag::semaphore semaphore_;
    sprag::limiter few_, rate_;
    sprag::counter counter_;
};

} // namespace

int main(int argc, char **argv) {
    if (argc != 5) {
        std::fprintf(stderr, "usage: %s URL PAGE SEAT ID\n", argv[0]);
        return 2;
    }
    const int file = open(argv[2], O_RDWR | O_CLOEXEC);
    void *mapped = mmap(nullptr, PAGE_WORDS * sizeof(word), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || mapped == MAP_FAILED) {
        std::perror(argv[2]);
        return 1;
    }
    close(file);
    try {
        worker(argv[1], static_cast<word *>(mapped), std::stoull(argv[3]), std::stoull(argv[4])).work();
        return 0;
    } catch (const broken &of) {
        std::fprintf(stderr, "C++ worker %s: %s\n", argv[4], of.rule.c_str());
    } catch (const std::exception &of) {
        std::fprintf(stderr, "C++ worker %s: %s\n", argv[4], of.what());
    }
    return 1;
}
