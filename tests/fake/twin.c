/* Two libraries of the same symbols: helper() and state, which each must keep for itself (user reports, F5).
 */
#include "fake.h"

int helper(void);
extern int state;
int state = FAKE_NUMBER;

int helper(void)
{
    return FAKE_NUMBER;
}

FAKE(ask_helper)
{
    UNUSED;
    return give_int(result, helper());
}

FAKE(ask_state)
{
    UNUSED;
    return give_int(result, state);
}
