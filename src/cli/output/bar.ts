// Draws a fraction as a bar of blocks.

/** Returns a bar of `width` (2 or more) characters. A fraction above 0 fills at least one of them, one below 1 never all. */
export function drawBar(fraction: number, width: number): string {
  const boundedFraction = Math.min(1, Math.max(0, fraction))
  const filledWidth = boundedFraction === 0 ? 0 : Math.max(1, Math.floor(boundedFraction * width))
  return `${'█'.repeat(filledWidth)}${'░'.repeat(width - filledWidth)}`
}
