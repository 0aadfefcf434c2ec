/* Trust for people and as JSON: the decisions on a build, the trusted root. */
#ifndef CLI_TRUST_H
#define CLI_TRUST_H

#include "cli.h"

/* [{"about", "decision", "words"}, …]; null for NULL. */
void cli_trust_json(FILE *to, const khub_trust *trust);

/* A line for each decision: "publisher  accepted  the caller vouches for it", after `indent` blanks. What is
 * said of the repository `of` (NULL: none) doesn't say its name again. */
void cli_trust_lines(FILE *to, const khub_trust *trust, const char *of, int indent);

/* {"reason", "words", "holds", "subject", "issuer", "repository", "commit", "ref", "workflow", "trigger",
 * "run", "log", "log_index", "signed_at"}: proven when it holds, else what is claimed; null for NULL. */
void cli_signature_json(FILE *to, const khub_signature *signature);

/* {"path", "sha256", "newest", "age_days"} of the policy's trusted root, or {"path", "error"}. */
void cli_root_json(FILE *to, const khub_policy *policy);

/* "PATH, newest key of 2025-10-06 (55 days ago)", or what is wrong with it; one line without its end. */
void cli_root_line(FILE *to, const khub_policy *policy);

#endif
