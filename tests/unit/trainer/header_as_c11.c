/* gradcube.h is C: it compiles as C11, alone, and its constants are those of the ABI. */
#include <gradcube/gradcube.h>

_Static_assert(GRADCUBE_FLOAT32 == 0 && GRADCUBE_BYTES == 8, "dtypes are part of the ABI");
_Static_assert(GRADCUBE_ALL_REDUCE == 0 && GRADCUBE_BARRIER == 5, "kinds are part of the ABI");
_Static_assert(GRADCUBE_SUM == 0 && GRADCUBE_MAX == 3, "operations are part of the ABI");
_Static_assert(GRADCUBE_ESYSTEM == -10 && GRADCUBE_EABORTED == -12, "codes are part of the ABI");
#if GRADCUBE_VERSION_CODE < 100
#error "the version can be compared by the preprocessor"
#endif

int call_from_c(void);
int call_from_c(void) {
  gradcube_options options = GRADCUBE_OPTIONS_INIT;
  gradcube_collective collective = GRADCUBE_COLLECTIVE_INIT;
  collective.kind = GRADCUBE_BARRIER;
  uint64_t request = 0;
  return gradcube_open("/nonexistent/socket", "job", &options, &(gradcube_session*){0}) +
         gradcube_submit(NULL, &collective, &request);
}
