/* A matrix of so many lines of so many elements becomes its transpose where it lies, cycle by cycle. */
static void turned_VARIANT(element_t *matrix, int32_t lines, int32_t columns)
{
    for (int32_t start = 1; start < lines * columns - 1; start++) {
        int32_t to = start % columns * lines + start / columns;
        while (to > start) {
            to = to % columns * lines + to / columns;
        }
        if (to == start) { /* the least place of its cycle */
            element_t moved = matrix[start];
            do {
                const element_t next = matrix[to = to % columns * lines + to / columns];
                matrix[to] = moved;
                moved = next;
            } while (to != start);
        }
    }
}
