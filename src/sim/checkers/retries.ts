// Rule `endless retry`: at rest no process repeats a write that the server rejects. Rejections by a quota do not count, because
// the quota may have room later.
import type { Kind } from '../../api/kind.ts'
import { ApiError } from '../../api/status-error.ts'
import type { Client, CommitWrite } from '../../client/index.ts'
import type { ClientObserver, Problem } from './context.ts'

export interface Retries extends ClientObserver {
  /** Counts from now on. */
  start(): void
  problems(): Problem[]
}

/** Bad request, not found, conflict or already exists, invalid: errors that a retry does not fix. */
const PERMANENT_CODES: readonly number[] = [400, 404, 409, 422]
/** A stale cache or a concurrent writer explains a few rejections. */
const REJECTIONS_MAX = 3

export function followRetries(): Retries {
  /** The number of rejections of each write, with the last message. */
  const rejections = new Map<string, { count: number; message: string }>()
  let isCounting = false

  async function countRejections<T>(describe: () => string, write: Promise<T>): Promise<T> {
    try {
      return await write
    } catch (error) {
      if (isCounting && error instanceof ApiError && PERMANENT_CODES.includes(error.code)) {
        const key = describe()
        rejections.set(key, { count: (rejections.get(key)?.count ?? 0) + 1, message: error.message })
      }
      throw error
    }
  }

  return {
    start() {
      isCounting = true
    },
    problems: () =>
      [...rejections].flatMap(([write, { count, message }]): Problem[] => {
        const text = `${write} was rejected ${count} times at rest: ${message}`
        return count > REJECTIONS_MAX ? [{ rule: 'endless retry', text }] : []
      }),
    wrapClient: (process, client): Client => {
      const describeWrite = (verb: string, { plural }: Kind, ref: Ref = {}) => {
        const key = ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name
        return `${process}: ${verb} ${plural} ${key}`
      }
      return {
        ...client,
        create: (kind, object, ...options) =>
          countRejections(
            () => describeWrite('create', kind, object.metadata),
            client.create(kind, object, ...options),
          ),
        update: (kind, object, ...options) =>
          countRejections(
            () => describeWrite('update', kind, object.metadata),
            client.update(kind, object, ...options),
          ),
        patch: (kind, ref, ...options) =>
          countRejections(() => describeWrite('patch', kind, ref), client.patch(kind, ref, ...options)),
        delete: (kind, ref, ...options) =>
          countRejections(() => describeWrite('delete', kind, ref), client.delete(kind, ref, ...options)),
        commit: (writes, ...options) =>
          countRejections(
            () => writes.map((write) => describeWrite(write.do, write.kind, refOf(write))).join(),
            client.commit(writes, ...options),
          ),
      }
    },
  }
}

interface Ref {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
}

const refOf = (write: CommitWrite): Ref =>
  (write as { readonly ref?: Ref }).ref ??
  (write as { readonly object?: { readonly metadata: Ref } }).object?.metadata ??
  {}
