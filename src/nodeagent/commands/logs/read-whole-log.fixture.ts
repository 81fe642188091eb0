// Reads the log of a container whose command has exited, as `kubectl logs` prints it.
import type { Stored } from '../../../api/kind.ts'
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import type { Containers } from '../containers.ts'
import { type LogOptions, readLog } from './read-log.ts'

export async function readWholeLog(
  containers: Containers,
  pod: Stored<Pod>,
  name: string,
  options: LogOptions & { readonly previous?: boolean } = {},
): Promise<string> {
  const log = await containers.findLog(pod, name, { previous: options.previous ?? false })
  if (!log) throw new Error(`container ${name} has no log`)
  await log.capture?.drain()
  const chunks: Buffer[] = []
  for await (const chunk of readLog(log.path, options, { signal: new AbortController().signal })) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}
