#pragma once
#define CONFIG_CACHE 0x4000
#define CONFIG_FLASH 1
#define CONFIG_RTC 0x10
