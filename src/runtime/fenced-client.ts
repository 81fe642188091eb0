// A leader's client. It sends writes only while this process leads, with the fences of its leases. If the process was
// frozen or cut off and another one has become the leader, a Stowage server rejects its late writes. Other API servers
// ignore fences: there only the check before sending applies. Reads and events are not fencedOptions.
import type { Kind } from '../api/kind.ts'
import type { LeaseFence } from '../api/kinds/lease/lease-fence.ts'
import { isLeaseLost } from '../api/status-error.ts'
import type { Client } from '../client/client.ts'
import { type LeaderElection, NotLeaderError } from './leader-election.ts'

interface FenceOptions {
  readonly fences?: readonly LeaseFence[]
}

export function fencedClient(client: Client, election: Pick<LeaderElection, 'leaseFences'>): Client {
  async function write<T, Options extends object>(
    kinds: readonly Kind[],
    options: Options | undefined,
    send: (options: (Options & FenceOptions) | (Options | undefined)) => Promise<T>,
  ): Promise<T> {
    if (kinds.every(({ kind }) => kind === 'Event')) return send(options)
    const fences = election.leaseFences()
    try {
      return await send({ ...(options as Options), fences })
    } catch (error) {
      if (!isLeaseLost(error)) throw error
      throw new NotLeaderError('this process is no longer the leader: it lost the lease before this write', {
        cause: error,
      })
    }
  }
  return {
    ...client,
    create: (kind, object, options) =>
      write([kind], options, (fencedOptions) => client.create(kind, object, fencedOptions)),
    update: (kind, object, options) =>
      write([kind], options, (fencedOptions) => client.update(kind, object, fencedOptions)),
    patch: (kind, ref, patch, options) =>
      write([kind], options, (fencedOptions) => client.patch(kind, ref, patch, fencedOptions)),
    delete: (kind, ref, request) => write([kind], request, (fencedOptions) => client.delete(kind, ref, fencedOptions)),
    commit: (writes, options) => {
      const kinds = writes.map(({ kind }) => kind)
      return write(kinds, options, (fencedOptions) => client.commit(writes, fencedOptions))
    },
  }
}
