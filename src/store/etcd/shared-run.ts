// Lets many callers share one run of something, such as asking etcd for its newest revision. Who comes while a run is
// under way shares the next one, so the answer was always found after the question was asked.

export function sharedRun<T>(run: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined
  let isBegun = false
  let next: Promise<T> | undefined

  function start(): Promise<T> {
    next = undefined
    isBegun = false
    const running = Promise.resolve().then(() => {
      isBegun = true // those who asked in the same breath share it too
      return run()
    })
    const finish = () => {
      if (current === running) current = undefined
    }
    current = running
    running.then(finish, finish)
    return running
  }

  return () => {
    if (!current) return start()
    if (!isBegun) return current
    next ??= current.then(start, start)
    return next
  }
}
