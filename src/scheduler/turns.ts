// Lets only so many pieces of work run at once; the others wait their turn, first come first served.

export function takingTurns(max: number): <T>(run: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = []
  let running = 0
  return async (run) => {
    if (running >= max) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await run()
    } finally {
      const next = waiting.shift()
      if (next)
        next() // hands over its turn
      else running--
    }
  }
}
