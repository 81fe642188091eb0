// Draws a fraction as a bar of blocks.

/** Returns a bar of `width` characters. A fraction above 0 fills at least one, and only a full one fills all. */
export function drawBar(fraction: number, width: number): string {
  const bounded = Math.min(1, Math.max(0, fraction))
  const filled = bounded === 0 ? 0 : Math.max(1, Math.floor(bounded * width))
  return `${'█'.repeat(filled)}${'░'.repeat(width - filled)}`
}
