#ifndef ADDRESSES_H
#define ADDRESSES_H
#define SRAM_BASE   (0x34000000) // alias
#define LOADER_SIZE (0x1F000)
#define LOADER_END  (SRAM_BASE + LOADER_SIZE)
#endif
