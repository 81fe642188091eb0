// One at a time for each key, in the order of asking; different keys do not wait for each other.

export type KeyedLock = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function keyedLock(): KeyedLock {
  const lastInLine = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const mine = (lastInLine.get(key) ?? Promise.resolve()).then(work, work)
    lastInLine.set(key, mine)
    const leave = () => {
      if (lastInLine.get(key) === mine) lastInLine.delete(key)
    }
    mine.then(leave, leave)
    return mine
  }
}
