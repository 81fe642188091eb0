// Lets concurrent callers share one run of an async function, such as fetching etcd's newest revision. A caller that
// arrives after a run has started shares the next one, so its result is never older than the call.

export function sharedRun<T>(run: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined
  let isStarted = false
  let next: Promise<T> | undefined

  function start(): Promise<T> {
    next = undefined
    isStarted = false
    const running = Promise.resolve().then(() => {
      isStarted = true // callers in the same tick share this run
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
    if (!isStarted) return current
    next ??= current.then(start, start)
    return next
  }
}
