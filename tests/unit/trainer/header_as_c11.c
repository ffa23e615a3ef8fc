/* gradcube.h is C: it compiles as C11, alone, and its constants are those of the ABI. */
#include <gradcube/gradcube.h>

_Static_assert(GRADCUBE_FLOAT32 == 0 && GRADCUBE_INT64 == 5, "dtypes are part of the ABI");
_Static_assert(GRADCUBE_SUM == 0 && GRADCUBE_MAX == 3, "operations are part of the ABI");
_Static_assert(GRADCUBE_ESYSTEM == -10 && GRADCUBE_EOVERFLOW == -11, "codes are part of the ABI");
#if GRADCUBE_VERSION_CODE < 100
#error "the version can be compared by the preprocessor"
#endif

int call_from_c(void);
int call_from_c(void) {
  return gradcube_open("/nonexistent/socket", "job", &(gradcube_session*){0});
}
