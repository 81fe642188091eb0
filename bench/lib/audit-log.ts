// Reads the requests in the audit log of an API server, counts them by verb and resource, and selects those that are made per
// volume.
import { readFile } from 'node:fs/promises'

export interface AuditedRequest {
  readonly user: string
  /** Verb and resource, for example `create persistentvolumes`. */
  readonly request: string
  readonly code: number
  readonly atMs: number
}

export async function readAuditLog(path: string): Promise<AuditedRequest[]> {
  const lines = (await readFile(path, 'utf8')).split('\n')
  return lines.filter((line) => line !== '').map(parseLine)
}

function parseLine(line: string): AuditedRequest {
  const { verb, user, objectRef, requestURI, responseStatus, stageTimestamp } = JSON.parse(line)
  const subresource = objectRef?.subresource ? `/${objectRef.subresource}` : ''
  const resource = objectRef ? `${objectRef.resource}${subresource}` : requestURI
  return {
    user: user.username,
    request: `${verb} ${resource}`,
    code: responseStatus?.code ?? 0,
    atMs: Date.parse(stageTimestamp),
  }
}

/** Counts requests by verb and resource, the most frequent first. */
export function countRequests(requests: readonly AuditedRequest[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { request } of requests) counts.set(request, (counts.get(request) ?? 0) + 1)
  return new Map([...counts].sort(([, a], [, b]) => b - a))
}

/** Whether a request counts as a request per volume: leases, lists, watches and paths without a resource do not. */
export const isPerVolume = ({ request }: AuditedRequest): boolean =>
  !/^(list|watch) /.test(request) && !request.endsWith(' leases') && !request.includes(' /')
