// Draws a fraction as a bar of blocks.

/** Returns a bar of `width` (2 or more) characters. Only the fraction 0 fills no character, and only 1 fills all of them. */
export function drawBar(fraction: number, width: number): string {
  const boundedFraction = Math.min(1, Math.max(0, fraction))
  const filledWidth = boundedFraction === 0 ? 0 : Math.max(1, Math.floor(boundedFraction * width))
  return `${'█'.repeat(filledWidth)}${'░'.repeat(width - filledWidth)}`
}
