// A mutex per key: calls with the same key run one at a time in FIFO order; different keys run concurrently.

export type KeyedLock = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function keyedLock(): KeyedLock {
  const tails = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const callResult = (tails.get(key) ?? Promise.resolve()).then(work, work)
    tails.set(key, callResult)
    const release = () => {
      if (tails.get(key) === callResult) tails.delete(key)
    }
    callResult.then(release, release)
    return callResult
  }
}
