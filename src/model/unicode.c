#include "model/unicode.h"

#include <stddef.h>
#include <utf8proc.h>

/* The tables of exceptions come from asking tokenizers 0.23.3 about every code point and comparing with
 * utf8proc 2.8.0; tests/oracle/test_tokenizer.py asks again. A range may span code points for which the
 * exception makes no difference. */
typedef struct range {
    uint32_t first, last;
} range;

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define IN(table, c) in_ranges(table, COUNT(table), c)

static int in_ranges(const range *table, size_t count, uint32_t c)
{
    size_t low = 0, high = count; /* table[low - 1].first <= c < table[high].first */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].first <= c)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && c <= table[low - 1].last;
}

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

int khub__char_is_space(uint32_t c)
{
    static const range spaces[] = {{0x0009, 0x000D}, {0x0020, 0x0020}, {0x0085, 0x0085}, {0x00A0, 0x00A0},
                                   {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                   {0x205F, 0x205F}, {0x3000, 0x3000}};
    return IN(spaces, c);
}

int khub__char_is_punctuation(uint32_t c)
{
    /* punctuation since Unicode 8.0 */
    static const range later[] = {{0x061D, 0x061D},   {0x09FD, 0x0A76},   {0x0C77, 0x0C84},
                                  {0x1B7D, 0x1B7E},   {0x2E43, 0x2E5D},   {0x10EAD, 0x10F89},
                                  {0x1144B, 0x1145D}, {0x11660, 0x116B9}, {0x1183B, 0x11FFF},
                                  {0x12FF1, 0x12FF2}, {0x16E97, 0x16FE2}, {0x1E95E, 0x1E95F}};
    if (c < 0x80)
        return (c > 0x20 && c < 0x30) || (c > 0x39 && c < 0x41) || (c > 0x5A && c < 0x61) ||
               (c > 0x7A && c < 0x7F);
    if (c == 0x166D || c == 0x111C9) return 1; /* punctuation until 8.0, then a symbol and a mark */
    utf8proc_category_t kind = category(c);
    return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO && !IN(later, c);
}

int khub__char_is_dropped(uint32_t c)
{
    /* format characters since Unicode 8.0 */
    static const range later[] = {{0x0890, 0x08E2}, {0x110CD, 0x1343F}};
    if (c == '\t' || c == '\n' || c == '\r') return 0;
    if (c == 0xFFFD) return 1;
    utf8proc_category_t kind = category(c);
    return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CO ||
           (kind == UTF8PROC_CATEGORY_CF && !IN(later, c));
}

int khub__char_is_ideograph(uint32_t c)
{
    /* BERT's own list, not that of any Unicode version */
    static const range ideographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                       {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                       {0x2F800, 0x2FA1F}};
    return IN(ideographs, c);
}

int khub__char_is_mark(uint32_t c)
{
    /* nonspacing marks since Unicode 8.0 */
    static const range later[] = {
        {0x07FD, 0x07FD},   {0x0898, 0x08E1},   {0x09FE, 0x09FE},   {0x0AFA, 0x0AFF},   {0x0B55, 0x0B55},
        {0x0C04, 0x0C3C},   {0x0D00, 0x0D00},   {0x0D3B, 0x0D3C},   {0x0D81, 0x0D81},   {0x0EBA, 0x0EBA},
        {0x0ECE, 0x0ECE},   {0x180F, 0x1886},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFB},   {0xA82C, 0xA82C},
        {0xA8C5, 0xA8C5},   {0xA8FF, 0xA8FF},   {0xA9BD, 0xA9BD},   {0x10D24, 0x10F85}, {0x11070, 0x11074},
        {0x110C2, 0x110C2}, {0x111C9, 0x111C9}, {0x111CF, 0x111CF}, {0x1123E, 0x11241}, {0x1133B, 0x1133B},
        {0x11438, 0x1145E}, {0x1182F, 0x13455}, {0x16F4F, 0x16F4F}, {0x16FE4, 0x16FE4}, {0x1CF00, 0x1CF46},
        {0x1E000, 0x1E4EF}, {0x1E944, 0x1E94A}};
    if (c == 0x1734) return 1; /* a spacing mark since 14.0 */
    return category(c) == UTF8PROC_CATEGORY_MN && !IN(later, c);
}

int khub__char_combining(uint32_t c)
{
    /* marks with a class since Unicode 9.0 */
    static const range later[] = {
        {0x07FD, 0x07FD},   {0x0898, 0x08D3},   {0x09FE, 0x09FE},   {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},
        {0x0EBA, 0x0EBA},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
        {0x10D24, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x11839, 0x11A99},
        {0x11D42, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E4EF}};
    int class = utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
    return class && !IN(later, c) ? class : 0;
}

int khub__char_is_word(uint32_t c)
{
    /* Other_Alphabetic that is no mark, and Join_Control */
    static const range others[] = {
        {0x200C, 0x200D}, {0x24B6, 0x24E9}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
    /* since Unicode 15.0 */
    static const range later[] = {
        {0x0897, 0x0897},   {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3},
        {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFC},
        {0x11380, 0x11389}, {0x1138B, 0x1138B}, {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0},
        {0x113C2, 0x113C2}, {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2},
        {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0}, {0x11BF0, 0x11BF9}, {0x11F5A, 0x11F5A}, {0x13460, 0x143FA},
        {0x16100, 0x16139}, {0x16D40, 0x16D6C}, {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1CCF0, 0x1CCF9},
        {0x1E5D0, 0x1E5FA}, {0x2EBF0, 0x2EE5D}};
    utf8proc_category_t kind = category(c);
    return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) || kind == UTF8PROC_CATEGORY_PC ||
           IN(others, c) || IN(later, c);
}

/* Upper-case letters that Unicode 16.0 and 17.0 brought, and how far their lower case is from each. */
static uint32_t lower_of_later(uint32_t c)
{
    static const struct {
        range letters;
        int32_t step, distance;
    } table[] = {{{0x1C89, 0x1C89}, 1, 1},    {{0xA7CB, 0xA7CB}, 1, 0x0264 - 0xA7CB},
                 {{0xA7CC, 0xA7CE}, 2, 1},    {{0xA7D2, 0xA7D4}, 2, 1},
                 {{0xA7DA, 0xA7DA}, 1, 1},    {{0xA7DC, 0xA7DC}, 1, 0x019B - 0xA7DC},
                 {{0x10D50, 0x10D65}, 1, 32}, {{0x16EA0, 0x16EB8}, 1, 27}};
    for (size_t i = 0; i < COUNT(table); i++)
        if (c >= table[i].letters.first && c <= table[i].letters.last)
            return (c - table[i].letters.first) % (uint32_t)table[i].step
                       ? c
                       : (uint32_t)((int32_t)c + table[i].distance);
    return c;
}

int khub__char_lower(uint32_t out[2], uint32_t c)
{
    if (c == 0x0130) { /* I with dot: the only character whose lower case is two, without regard to language
                          or context */
        out[0] = 'i';
        out[1] = 0x0307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    if (out[0] == c && c >= 0x1C89 && category(c) == UTF8PROC_CATEGORY_CN) out[0] = lower_of_later(c);
    return 1;
}

int khub__char_decompose(uint32_t out[4], uint32_t c)
{
    utf8proc_int32_t parts[4];
    utf8proc_ssize_t count = 1;
    parts[0] = (utf8proc_int32_t)c;
    if (c != 0x11938) /* has a decomposition since Unicode 13.0 */
        count = utf8proc_decompose_char((utf8proc_int32_t)c, parts, 4, UTF8PROC_DECOMPOSE, NULL);
    for (utf8proc_ssize_t i = 0; i < count; i++)
        out[i] = (uint32_t)parts[i];
    return (int)count;
}
