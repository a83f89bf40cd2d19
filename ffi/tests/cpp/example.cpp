// The example at the top of the header: what is printed there is what is compiled and run here.

#include "check.hpp"

#include <fstream>
#include <sstream>

using check::test;

namespace {

#ifdef __cpp_exceptions

int served = 0;
int refused = 0;

void serve(std::uint64_t token) { served += token != 0 ? 1 : 0; }
void refuse() { ++refused; }

void example() {
    // The header's example begins.
    auto space = sprag::space::open("shm:orders").value();

    auto api = space.limiter("api", "100/minute;burst=20").value();
    if (!api.allow("user:42").value())
        return refuse();

    auto orders = space.lock("orders", std::chrono::seconds(10)).value();
    if (auto hold = orders.try_acquire().value())
        serve(hold->token()); // released at the end of the block
    // The header's example ends.
}

void running() {
    const check::directory of;
    for (int at = 0; at < 20; ++at)
        example();
    CHECK(served == 20);
}

#endif

// A file of the repository.
std::string file(const std::string &path) {
    const std::string own = __FILE__;
    std::ifstream from(own.substr(0, own.rfind("ffi/tests/cpp/")) + path);
    std::stringstream text;
    text << from.rdbuf();
    return text.str();
}

// What is between two texts, the first time.
std::string between(const std::string &text, const std::string &begin, const std::string &end) {
    const auto from = text.find(begin);
    const auto to = text.find(end, from + begin.size());
    if (from == std::string::npos || to == std::string::npos)
        return "";
    return text.substr(from + begin.size(), to - from - begin.size());
}

void as_printed() {
    const auto compiled = between(file("ffi/tests/cpp/example.cpp"), "// The header's example begins.\n",
                                  "    // The header's example ends.\n");
    std::stringstream top(between(file("include/sprag.hpp"), "/*\n", " */\n"));
    std::string printed;
    for (std::string line; std::getline(top, line);) {
        if (line.rfind(" *     ", 0) == 0)
            printed += line.substr(3) + '\n';
        else if (line == " *" && !printed.empty())
            printed += '\n';
        else if (!printed.empty())
            break;
    }
    // The empty line after it is none of its.
    CHECK(printed == compiled + '\n' && !compiled.empty());
}

} // namespace

int main() {
    test("the header's example is what is compiled here", as_printed);
#ifdef __cpp_exceptions
    test("the header's example serves as long as the limit admits", running);
#endif
    return check::conclude();
}
