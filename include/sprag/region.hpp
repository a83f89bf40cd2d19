// Regions: the files of shm: spaces.

#ifndef SPRAG_REGION_HPP
#define SPRAG_REGION_HPP

#include "../sprag.h"
#include "space.hpp"

#include <cstdint>
#include <string_view>

namespace sprag {

// The files of shm: spaces. flags: SPRAG_GROUP_SHARED and SPRAG_EVEN_IF_IN_USE, or'ed together.
namespace region {

// The regions in this user's directory, by name: visit(const sprag_region_file &), as for the visitors of a space.
template <class Visit> result<void> each(Visit &&visit) {
    sprag_error *failure = nullptr;
    const sprag_status status = detail::visited<sprag_region_file>(
        visit, [](auto... by) { return sprag_region_each(by...); }, failure);
    return detail::done(status, failure);
}

// The region at url, without opening a session in it: visit(const sprag_region_info &), once.
template <class Visit> result<void> probe(std::string_view url, Visit &&visit, std::uint32_t flags = 0) {
    const auto checked = detail::text(url, "url");
    if (!checked)
        return checked.error();
    sprag_error *failure = nullptr;
    const sprag_status status = detail::visited<sprag_region_info>(
        visit, [&](auto... by) { return sprag_region_probe(checked->c_str(), flags, by...); }, failure);
    return detail::done(status, failure);
}

// Removes the region at url.
inline result<void> remove(std::string_view url, std::uint32_t flags = 0) {
    const auto checked = detail::text(url, "url");
    if (!checked)
        return checked.error();
    sprag_error *failure = nullptr;
    return detail::done(sprag_region_remove(checked->c_str(), flags, &failure), failure);
}

// Replaces the region at url by one with the caps of options, while nobody uses it; a cap of 0 stays what it is.
inline result<void> resize(std::string_view url, const space_options &options) {
    const auto checked = detail::text(url, "url");
    if (!checked)
        return checked.error();
    sprag_error *failure = nullptr;
    return detail::done(sprag_region_resize(checked->c_str(), &options, &failure), failure);
}

} // namespace region

} // namespace sprag

#endif // SPRAG_REGION_HPP
