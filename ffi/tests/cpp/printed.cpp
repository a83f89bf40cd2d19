// The quick start of the README and the example at the top of the header: what is printed there is what is
// compiled and run here. Run it where it was compiled, since it reads both files.

#include "check.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

using check::test;

#ifdef __cpp_exceptions

#define main quick_start
#include "../../examples/quickstart.cpp"
#undef main

namespace {

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

void running_the_example() {
    std::string directory = "/tmp/sprag-XXXXXX";
    CHECK(mkdtemp(directory.data()) != nullptr);
    CHECK(setenv("SPRAG_DIR", directory.c_str(), 1) == 0);
    for (int at = 0; at < 21; ++at)
        example();
    CHECK(served == 20 && refused == 1);
    CHECK(std::remove((directory + "/orders.sprag").c_str()) == 0);
    CHECK(std::remove(directory.c_str()) == 0);
}

} // namespace

#endif

namespace {

// The repository's file of this path.
std::string file(const std::string &path) {
    const std::string own = __FILE__;
    const std::string root = own.substr(0, own.rfind("ffi/tests/cpp/"));
    std::ifstream from(root + path);
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

void the_readme() {
    const auto printed = between(file("README.md"), "```cpp\n", "```\n");
    CHECK(!printed.empty() && printed == file("ffi/examples/quickstart.cpp"));
}

void the_header() {
    const auto compiled = between(file("ffi/tests/cpp/printed.cpp"), "// The header's example begins.\n",
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
    test("the README's quick start is the example that is compiled", the_readme);
    test("the header's example is what is compiled here", the_header);
#ifdef __cpp_exceptions
    test("the quick start runs", [] { CHECK(quick_start() == 0); });
    test("the header's example serves as many as the limit admits", running_the_example);
#endif
    return check::conclude();
}
