#include "tests/support/onednn_counter.h"

#include <dlfcn.h>

#include <atomic>

#include "oneapi/dnnl/dnnl.h"

namespace attendant::test_support {
namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> primitives = 0, reorders = 0, products = 0;

dnnl_primitive_kind_t KindOf(const_dnnl_primitive_t primitive) {
  const_dnnl_primitive_desc_t description = nullptr;
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  dnnl_primitive_get_primitive_desc(primitive, &description);
  dnnl_primitive_desc_query(description, dnnl_query_primitive_kind, 0, &kind);
  return kind;
}

// Returns oneDNN's own function of this name.
template <typename Function>
Function* Original(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

OneDnnCounter::OneDnnCounter() {
  primitives = reorders = products = 0;
  counting = true;
}
OneDnnCounter::~OneDnnCounter() { counting = false; }
int64_t OneDnnCounter::primitives_created() const { return primitives; }
int64_t OneDnnCounter::reorders_run() const { return reorders; }
int64_t OneDnnCounter::products_run() const { return products; }

}  // namespace attendant::test_support

// oneDNN's C++ interface ends in these two functions.
dnnl_status_t dnnl_primitive_create(dnnl_primitive_t* primitive,
                                    const_dnnl_primitive_desc_t description) {
  using namespace attendant::test_support;
  static auto* const original = Original<decltype(dnnl_primitive_create)>("dnnl_primitive_create");
  if (counting) ++primitives;
  return original(primitive, description);
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t* arguments) {
  using namespace attendant::test_support;
  static auto* const original =
      Original<decltype(dnnl_primitive_execute)>("dnnl_primitive_execute");
  if (counting) ++(KindOf(primitive) == dnnl_reorder ? reorders : products);
  return original(primitive, stream, count, arguments);
}
