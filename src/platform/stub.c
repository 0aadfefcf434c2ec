/* Stands in until src/platform is built. */
#include <khub/platform.h>
int khub_platform_detect(khub_platform **out, const khub_platform_options *o, khub_error *err) { (void)o; (void)err; *out = NULL; return KHUB_E_UNSUPPORTED; }
int khub_platform_read(khub_platform **out, const char *p, khub_error *err) { (void)p; (void)err; *out = NULL; return KHUB_E_UNSUPPORTED; }
int khub_platform_select(khub_platform *p, const char *b, khub_error *err) { (void)p; (void)b; (void)err; return KHUB_E_UNSUPPORTED; }
