// What becomes of what exists by another definition.

#ifndef SPRAG_DEFINE_HPP
#define SPRAG_DEFINE_HPP

#include "../sprag.h"

#include <cstdint>

namespace sprag {

// Whether what exists by another definition keeps it.
enum class define : std::uint32_t {
    // An error: SPRAG_ERROR_DEFINITION_DIFFERS.
    same = 0,
    // It gets this one; what its keys have used is kept.
    update = SPRAG_UPDATE,
};

} // namespace sprag

#endif // SPRAG_DEFINE_HPP
