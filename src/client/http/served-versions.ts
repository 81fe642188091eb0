// Finds the version of a kind to use: the first of the kind's versions that the server's discovery lists.
import type { Kind } from '../../api/kind.ts'
import { isNotServed } from '../../api/status-error.ts'
import type { Transport } from './transport.ts'
import { parseResponse } from './wire.ts'

/** Versions are cached until a request fails because the kind is not served. A kind that is not served is looked up again. */
export function createServedVersions(transport: Transport) {
  const servedVersions = new Map<string, string>()
  const idOf = ({ group, plural }: Kind) => `${group}/${plural}`
  const find = async (kind: Kind): Promise<string | undefined> => {
    const cachedVersion = servedVersions.get(idOf(kind))
    if (cachedVersion) return cachedVersion
    for (const version of kind.versions) {
      if (!(await isServed(transport, kind, version))) continue
      servedVersions.set(idOf(kind), version)
      return version
    }
    return undefined
  }
  return {
    find,
    invalidate: (kind: Kind) => void servedVersions.delete(idOf(kind)),
    /** A kind with one version needs no lookup: if it is not served, the request itself fails. */
    versionOf: async (kind: Kind): Promise<string> =>
      kind.versions.length === 1 ? kind.versions[0]! : ((await find(kind)) ?? kind.versions[0]!),
  }
}

async function isServed(transport: Transport, { group, plural }: Kind, version: string): Promise<boolean> {
  const path = group ? `/apis/${group}/${version}` : `/api/${version}`
  try {
    const { resources } = parseResponse(await transport.call({ method: 'GET', path }))
    return (resources ?? []).some(({ name }: { name: string }) => name === plural)
  } catch (error) {
    if (isNotServed(error)) return false // the server does not have the group version
    throw error
  }
}
