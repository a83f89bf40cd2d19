// Owners: who holds, when locks are to be re-entrant and deadlocks found.

#ifndef SPRAG_OWNER_HPP
#define SPRAG_OWNER_HPP

#include "../sprag.h"
#include "detail.hpp"

namespace sprag {

// Who holds, when locks are to be re-entrant and deadlocks found: see space::owner().
class owner : public detail::handle<sprag_owner, sprag_owner_close> {
  public:
    using handle::handle;
};

} // namespace sprag

#endif // SPRAG_OWNER_HPP
