// Creates a claim for a directory volume, which every `stowage up` can provision, even without nodes.
import type { RunningServer } from './server.ts'
import { watchFrom } from './watch.ts'

const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims'

/** Resolves when the claim is bound. */
export async function bindDirectoryClaim(server: RunningServer, name: string): Promise<void> {
  const { status, text, json } = await server.call('POST', CLAIMS, {
    metadata: { name },
    spec: {
      storageClassName: 'directory',
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Mi' } },
    },
  })
  if (status !== 201) throw new Error(text)
  const watch = watchFrom(server, CLAIMS, Number(json.metadata.resourceVersion))
  await watch.waitUntil((events) =>
    events.some(({ object }) => object.metadata.name === name && object.status?.phase === 'Bound'),
  )
  watch.close()
}
