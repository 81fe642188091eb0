// Reports permissions that the user of this process lacks, until a request with the same verb and resource succeeds. The missing
// permissions of one feature are reported together: the first one takes the feature out of service.
import type { Kind } from '../api/kind.ts'
import { leaseKind } from '../api/kinds/lease/lease.ts'
import { type ApiError, isMissingRight } from '../api/status-error.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import {
  type Client,
  type CommitWrite,
  failedWriteIndex,
  type ObjectRef,
  type WatchEvent,
  type WatchRequest,
} from '../client/client.ts'
import type { EventRecorder } from './events.ts'

interface MissingRight {
  readonly verb: string
  /** The plural of the kind, with group and subresource: `leases.coordination.k8s.io`, `pods/status`. */
  readonly resource: string
  /** The feature that needs the permission. Absent if no optional feature needs it. */
  readonly feature?: string
  readonly sinceMs: number
  /** The server's message. */
  readonly message: string
}

export interface RightsOptions {
  readonly clock: Clock
  readonly log: Logger
  /** Sets the metric of a permission. */
  observe?(verb: string, resource: string, isMissing: boolean): void
  /** Records the events. Without it, permissions are reported without events. */
  readonly events?: Pick<EventRecorder, 'record'>
  /** Returns the optional feature of this process that needs the permission, if there is one. */
  featureOf?(verb: string, resource: string): string | undefined
}

export interface Rights {
  /** Returns the permissions that are missing now. */
  listMissing(): readonly MissingRight[]
  /** Returns one line for each missing permission, for the health details. */
  notes(): string[]
  /** Returns a client that reports the permissions that its requests lack. `user` names its user if there are several. */
  track<C extends Client>(client: C, user?: string): C
  /** Records events about requests without an object, such as a watch, on this lease. Default: these have no events. */
  recordOnLease(lease: ObjectRef): void
}

interface Access {
  /** The client's user, if a process has clients of several users. */
  readonly user?: string
  readonly verb: string
  readonly kind: Kind
  readonly subresource?: string
  /** The object of an update, patch or delete. */
  readonly ref?: ObjectRef
  /** A log message that describes what the caller does without the permission. */
  readonly denialMessage?: string
}

/** Bounds the permissions that are listed. Further denials are not reported. */
const RIGHTS_MAX = 100
/** Bounds the objects with an event for one missing permission. */
const EVENTS_MAX = 20
/** Missing permissions for these kinds are not recorded as events: the event, or the lease it is about, may be inaccessible. */
const KINDS_WITHOUT_EVENTS: readonly string[] = ['Event', 'Lease']

export function createRights({ clock, log, observe, events, featureOf }: RightsOptions): Rights {
  const missingRights = new Map<string, MissingRight & { readonly objects: Set<string> }>()
  let lease: ObjectRef | undefined

  const isFeatureOff = (feature: string) => [...missingRights.values()].some((right) => right.feature === feature)

  function recordGrant(access: Access): void {
    if (missingRights.size === 0) return
    const { verb, resource, id } = describeAccess(access)
    const feature = missingRights.get(id)?.feature
    if (!missingRights.delete(id)) return
    const isMissing = [...missingRights.values()].some((right) => right.verb === verb && right.resource === resource)
    if (!isMissing) observe?.(verb, resource, false) // another user may still lack it
    const { user } = access
    const fields = { verb, resource, ...(user === undefined ? {} : { user }), ...(feature ? { feature } : {}) }
    if (feature && isFeatureOff(feature)) log.debug(fields, 'one of the missing permissions of the feature was granted')
    else log.info(fields, 'the missing permission was granted; the feature is in service again')
  }

  function recordDenial(client: Client, access: Access, error: ApiError): void {
    const { verb, resource, id } = describeAccess(access)
    let right = missingRights.get(id)
    if (!right) {
      if (missingRights.size >= RIGHTS_MAX) return
      const feature = featureOf?.(verb, resource)
      const isReported = feature !== undefined && isFeatureOff(feature)
      right = { verb, resource, feature, sinceMs: clock.nowMs(), message: error.message, objects: new Set() }
      missingRights.set(id, right)
      observe?.(verb, resource, true)
      logDenial(access, right, isReported)
      const belongsOnLease = !access.ref && !KINDS_WITHOUT_EVENTS.includes(access.kind.kind)
      if (lease && belongsOnLease && !isReported) void recordEvent(client, leaseKind, lease, right)
    }
    const { kind, ref } = access
    if (!ref || KINDS_WITHOUT_EVENTS.includes(kind.kind) || right.objects.size >= EVENTS_MAX) return
    void recordEvent(client, kind, ref, right)
  }

  function logDenial({ denialMessage }: Access, right: MissingRight, isReported: boolean): void {
    const { verb, resource, feature, message: reason } = right
    const fields = { verb, resource, reason, ...(feature ? { feature } : {}) }
    if (isReported) log.debug(fields, 'another missing permission of a feature that is out of service')
    else if (denialMessage) log.info(fields, `cannot ${verb} ${resource} until a role grants it: ${denialMessage}`)
    else if (feature)
      log.warn(
        fields,
        `the feature ${feature} is out of service until a role grants its permissions: cannot ${verb} ${resource}`,
      )
    else {
      log.error(
        fields,
        `missing permission: cannot ${verb} ${resource}; features that need it are out of service until a role grants it`,
      )
    }
  }

  async function recordEvent(
    client: Client,
    kind: Kind,
    ref: ObjectRef,
    right: MissingRight & { objects: Set<string> },
  ): Promise<void> {
    if (!events) return
    const key = `${ref.namespace ?? ''}/${ref.name}`
    if (right.objects.has(key)) return
    right.objects.add(key)
    const { verb, resource, feature } = right
    const consequence = feature ? `the feature ${feature} is out of service: ` : ''
    const message = `${consequence}cannot ${verb} ${resource}: ${right.message}. Grant the permission; the request is then retried.`
    try {
      events.record(kind, await client.get(kind, ref), { type: 'Warning', reason: 'MissingRight', message })
    } catch (error) {
      log.debug(
        { err: error, kind: kind.kind, ...ref },
        'no event about the missing permission: cannot read the object',
      )
    }
  }

  async function trackRequest<R>(client: Client, access: Access, request: Promise<R>): Promise<R> {
    try {
      const result = await request
      recordGrant(access)
      return result
    } catch (error) {
      if (isMissingRight(error)) recordDenial(client, access, error as ApiError)
      throw error
    }
  }

  /** Passes the events on without a generator of its own, which would cost several promises per event. */
  function trackWatch(client: Client, access: Access, request: WatchRequest): AsyncIterable<WatchEvent<never>> {
    const events = client.watch(access.kind, request) as AsyncIterable<WatchEvent<never>>
    const onResult = (result: IteratorResult<WatchEvent<never>>) => {
      if (!result.done) recordGrant(access)
      return result
    }
    const onError = (error: unknown): never => {
      if (isMissingRight(error)) recordDenial(client, access, error as ApiError)
      throw error
    }
    return {
      [Symbol.asyncIterator]() {
        const iterator = events[Symbol.asyncIterator]()
        return {
          next: () => iterator.next().then(onResult, onError),
          return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
        }
      },
    }
  }

  async function trackCommit(
    client: Client,
    writes: readonly CommitWrite[],
    options: Parameters<Client['commit']>[1],
    user: string | undefined,
  ) {
    try {
      const objects = await client.commit(writes, options)
      if (missingRights.size > 0) for (const write of writes) recordGrant({ ...accessOf(write), user })
      return objects
    } catch (error) {
      const write = writes[failedWriteIndex(error) ?? (writes.length === 1 ? 0 : -1)]
      if (write && isMissingRight(error)) recordDenial(client, { ...accessOf(write), user }, error as ApiError)
      throw error
    }
  }

  return {
    listMissing: () => [...missingRights.values()],
    notes: () =>
      [...missingRights.values()].map(
        ({ verb, resource, feature, sinceMs }) =>
          `missing permission since ${new Date(sinceMs).toISOString()}: cannot ${verb} ${resource}` +
          `${feature ? `; the feature ${feature} is out of service` : ''}`,
      ),
    recordOnLease(ref) {
      lease = ref
    },
    track: (client, user) => ({
      ...client,
      get: (kind, ref, options) => {
        const access = { user, verb: 'get', kind, denialMessage: options?.denialMessage }
        return trackRequest(client, access, client.get(kind, ref, options))
      },
      list: (kind, request) => trackRequest(client, { user, verb: 'list', kind }, client.list(kind, request)),
      create: (kind, object, options) =>
        trackRequest(
          client,
          { user, verb: 'create', kind, subresource: options?.subresource },
          client.create(kind, object, options),
        ),
      update: (kind, object, options) => {
        const { namespace, name = '' } = object.metadata
        const access = { user, verb: 'update', kind, subresource: options?.subresource, ref: { namespace, name } }
        return trackRequest(client, access, client.update(kind, object, options))
      },
      patch: (kind, ref, patch, options) => {
        const access = { user, verb: 'patch', kind, subresource: options?.subresource, ref }
        return trackRequest(client, access, client.patch(kind, ref, patch, options))
      },
      delete: (kind, ref, request) =>
        trackRequest(client, { user, verb: 'delete', kind, ref }, client.delete(kind, ref, request)),
      watch: ((kind: Kind, request: WatchRequest) =>
        trackWatch(client, { user, verb: 'watch', kind }, request)) as Client['watch'],
      commit: (writes, options) => trackCommit(client, writes, options, user),
    }),
  }
}

function describeAccess({ user = '', verb, kind, subresource }: Access): {
  verb: string
  resource: string
  id: string
} {
  const group = kind.group ? `.${kind.group}` : ''
  const resource = `${kind.plural}${group}${subresource ? `/${subresource}` : ''}`
  return { verb, resource, id: `${user} ${verb} ${resource}` }
}

function accessOf(write: CommitWrite): Access {
  const { do: verb, kind } = write
  const subresource = 'subresource' in write ? write.subresource : undefined
  if (write.do === 'create') return { verb, kind, subresource }
  const { namespace, name = '' } = 'ref' in write ? write.ref : write.object.metadata
  return { verb, kind, subresource, ref: { namespace, name } }
}
