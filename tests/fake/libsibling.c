/* What sibling.c needs. */
int fake_sibling(void);
#ifdef FAKE_SYMBOL
extern int FAKE_SYMBOL(void);
#define FAKE_ANSWER FAKE_SYMBOL()
#elif !defined(FAKE_ANSWER)
#define FAKE_ANSWER 17
#endif

int fake_sibling(void)
{
    return FAKE_ANSWER;
}
