// A commit on a server that cannot do it as one transaction: the writes in order, each on its own, up to the first
// that fails. What came before it stays.
import type { Stored } from '../api/kind.ts'
import { type Client, type CommitWrite, commitWriteFailed } from './client.ts'

type Verbs = Pick<Client, 'get' | 'create' | 'update' | 'patch' | 'delete'>
type Shared = { readonly fieldManager?: string; readonly signal?: AbortSignal }

export async function commitOneByOne(
  client: Verbs,
  writes: readonly CommitWrite[],
  shared: Shared = {},
): Promise<(Readonly<Stored> | undefined)[]> {
  const left: (Readonly<Stored> | undefined)[] = []
  for (const [index, one] of writes.entries()) {
    try {
      left.push(await single(client, one, shared))
    } catch (error) {
      throw commitWriteFailed(error, index)
    }
  }
  return left
}

async function single(client: Verbs, one: CommitWrite, shared: Shared): Promise<Readonly<Stored> | undefined> {
  switch (one.do) {
    case 'create': {
      const created = await client.create(one.kind, one.object, { ...shared, subresource: one.subresource })
      const { namespace, name } = created.metadata
      return one.subresource ? client.get(one.kind, { namespace, name }) : created
    }
    case 'update':
      return client.update(one.kind, one.object, { ...shared, subresource: one.subresource })
    case 'patch':
      return client.patch(one.kind, one.ref, one.patch, { ...shared, subresource: one.subresource })
    case 'delete':
      return client.delete(one.kind, one.ref, {
        uid: one.uid,
        resourceVersion: one.resourceVersion,
        signal: shared.signal,
      })
  }
}
