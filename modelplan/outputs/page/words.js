// @ts-check
"use strict";
/** The words of the page, each explained in a sentence: shown on hover, and all together in the help. */

/** @type {Record<string, string>} */
const WORDS = {
  arena: "The memory that a program has to reserve: the planned activations, and what the runtime keeps for itself.",
  height: "The memory in which buffers lie: from address 0 to the end of the highest. The map shows it.",
  "planned activations": "The memory in which buffers come and go: from address 0 to the end of the highest. The map shows it.",
  "kept by the runtime": "Memory of the same arena for the runtime's own tables. It grows with the operators and tensors of the file.",
  capacity: "The memory that there is.",
  "lower bound": "No placement of these buffers can need less than this.",
  buffer: "A range of bytes that holds a tensor, or several tensors that share it.",
  step: "Operators run one after the other. Each is a step of the map, from left to right.",
  alive: "From the step that writes a buffer to the last step that reads it. Before and after, its bytes are free for others.",
  "bytes alive": "The bytes of all buffers that are alive at a step.",
  "alive at the peak": "The bytes that hold buffers at the busiest step, each counted once.",
  peak: "A step at which more bytes are alive than before and after it. The highest peak decides how much memory is needed.",
  "live set": "The buffers that are alive at a step.",
  share: "The part of the bytes alive at this step that belongs to the buffer.",
  address: "Where the buffer begins, in bytes from the beginning of its memory.",
  "first step": "The step that writes the buffer. An input of the model has its bytes from step 0.",
  lifetime: "How many steps the buffer is alive.",
  "last step": "The last step that needs the buffer. After it the bytes are free.",
  "bytes of several buffers at once": "Two buffers lie partly in the same bytes although both are alive: an operator writes its output over input that it has read already, or a loop writes rows where it needs others no more. The result is the same.",
  input: "What the caller writes before the first step.",
  output: "What the caller reads after the last step.",
  activation: "What one operator writes and others read.",
  shared: "Several tensors in the same bytes, such as a tensor before and after a reshape, or the values that a loop hands on.",
  scratch: "Working memory of one operator while it runs.",
  state: "A value that is kept from one run of the model to the next.",
  weights: "Constants of the model.",
  free: "Memory of the arena that no buffer uses at that step.",
  "offline plan": "Addresses of tensors that stand in the model file. TFLM takes them and plans only the rest by itself.",
  stripe: "Some rows or columns of a map. A map that is computed stripe by stripe never lies in memory whole.",
  sharing: "Which tensors may use the same bytes although both are alive.",
  order: "Who chose the order of the operators.",
  allocator: "The program that chose the addresses.",
  fragmentation: "Bytes of the arena that are free at the highest peak, because of where the buffers lie.",
  "lost to fragmentation": "Free bytes below the lower bound while a buffer that fits into no gap lies above it: in one piece they would hold it.",
  "alignment loss at the peak": "Bytes lost at the highest peak because addresses and sizes are rounded up.",
  "proved lowest": "What is proved: that no placement, or also that no order of the operators, needs less.",
  "shared while overlapping": "Bytes that two buffers have at once, since one is written over the other while that is still read.",
};

/** A word with its explanation on hover, where there is one. @param {string} word */
function explained(word) {
  return WORDS[word] ? make("span", { title: WORDS[word], className: "term" }, word) : make("span", {}, word);
}
