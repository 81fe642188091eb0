// Reads a path when a component is mounted and whenever a value changes. The last response is shown until the next one arrives.
import { useEffect, useState } from 'preact/hooks'
import type { Problem } from '../../protocol.ts'
import { messageOf, request } from './api.ts'

interface RequestState<T> {
  readonly value?: T
  readonly problem?: string
}

/** `trigger` is a value, such as a revision, whose change reads the path again. */
export function useRequest<T>(path: string, trigger: unknown): RequestState<T> {
  const [state, setState] = useState<RequestState<T>>({})
  useEffect(() => {
    const controller = new AbortController()
    request<T | Problem>(path, { signal: controller.signal }).then(
      (value) => setState(isProblem(value) ? value : { value }),
      (error: unknown) => {
        if (!controller.signal.aborted) setState({ problem: messageOf(error) })
      },
    )
    return () => controller.abort()
  }, [path, trigger])
  return state
}

const isProblem = (value: unknown): value is Problem =>
  typeof value === 'object' && value !== null && 'problem' in value && typeof value.problem === 'string'

/** Returns a query with encoded values. */
export const queryOf = (params: Readonly<Record<string, string>>): string => `?${new URLSearchParams(params)}`
