// Formats a count with its noun: `1 seed`, `2 seeds`, `1,200 steps`.

export const pluralize = (count: number, noun: string): string =>
  `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
