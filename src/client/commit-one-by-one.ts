// A commit on a server without transactions: single writes in order, until one fails. The writes before it are not undone.
import type { Stored } from '../api/kind.ts'
import { type Client, type CommitOptions, type CommitWrite, commitWriteFailed } from './client.ts'

type Verbs = Pick<Client, 'get' | 'create' | 'update' | 'patch' | 'delete'>

export async function commitOneByOne(
  client: Verbs,
  writes: readonly CommitWrite[],
  options: CommitOptions = {},
): Promise<(Readonly<Stored> | undefined)[]> {
  const objects: (Readonly<Stored> | undefined)[] = []
  for (const [index, write] of writes.entries()) {
    try {
      objects.push(await writeOne(client, write, options))
    } catch (error) {
      throw commitWriteFailed(error, index)
    }
  }
  return objects
}

async function writeOne(
  client: Verbs,
  write: CommitWrite,
  options: CommitOptions,
): Promise<Readonly<Stored> | undefined> {
  switch (write.do) {
    case 'create': {
      const createdObject = await client.create(write.kind, write.object, {
        ...options,
        subresource: write.subresource,
      })
      const { namespace, name } = createdObject.metadata
      return write.subresource ? client.get(write.kind, { namespace, name }) : createdObject
    }
    case 'update':
      return client.update(write.kind, write.object, { ...options, subresource: write.subresource })
    case 'patch':
      return client.patch(write.kind, write.ref, write.patch, { ...options, subresource: write.subresource })
    case 'delete':
      return client.delete(write.kind, write.ref, {
        uid: write.uid,
        resourceVersion: write.resourceVersion,
        signal: options.signal,
        fences: options.fences,
      })
  }
}
