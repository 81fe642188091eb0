// Parses an API server's requests to the node agent, which have the paths and parameters of the kubelet's API.
//   /exec/NAMESPACE/POD/CONTAINER?command=ls&output=1     also with the UID of the pod before the container
//   /attach/NAMESPACE/POD/CONTAINER?input=1&output=1&tty=1
//   /containerLogs/NAMESPACE/POD/CONTAINER?follow=true&tailLines=10
import type { LogOptions } from '../commands/logs/read-log.ts'
import type { StreamRequest } from './command-streams.ts'

export interface PodName {
  readonly namespace: string
  readonly pod: string
  readonly uid?: string
}

export type AgentRequest =
  | (PodName & {
      readonly is: 'exec'
      readonly container: string
      readonly streams: StreamRequest
      readonly command: string[]
    })
  | (PodName & { readonly is: 'attach'; readonly container: string; readonly streams: StreamRequest })
  | (PodName & {
      readonly is: 'logs'
      readonly container: string
      readonly follow: boolean
      readonly previous: boolean
      readonly options: LogOptions
    })
  | { readonly is: 'invalid'; readonly message: string }

/** Returns undefined for an unknown path. */
export function readAgentRequest(url: string, nowMs: number): AgentRequest | undefined {
  const { pathname, searchParams: query } = new URL(url, 'https://node')
  const segments = decodeSegments(pathname)
  const [action, namespace, pod, ...rest] = segments ?? []
  if (!namespace || !pod) return undefined
  const container = rest.at(-1)
  if (!container || rest.length > 2) return undefined
  const target = { namespace, pod, uid: rest.length === 2 ? rest[0] : undefined, container }
  if (action === 'containerLogs') return readLogRequest(target, query, nowMs)
  if (action !== 'exec' && action !== 'attach') return undefined
  const [stdin, stdout, stderr, tty] = ['input', 'output', 'error', 'tty'].map((name) => isSet(query, name))
  const streams = { stdin: stdin!, stdout: stdout!, stderr: stderr! && !tty, tty: tty! }
  if (!stdin && !stdout && !stderr) {
    return { is: 'invalid', message: 'you must specify at least 1 of stdin, stdout, stderr' }
  }
  if (action === 'attach') return { is: 'attach', ...target, streams }
  const command = query.getAll('command')
  if (command.length === 0) return { is: 'invalid', message: 'you must specify a command' }
  return { is: 'exec', ...target, streams, command }
}

function readLogRequest(
  target: PodName & { readonly container: string },
  query: URLSearchParams,
  nowMs: number,
): AgentRequest {
  const readNumber = (name: string): number | undefined => {
    const text = query.get(name)
    return text === null || text === '' ? undefined : Number(text)
  }
  const [tailLines, limitBytes, sinceSeconds] = ['tailLines', 'limitBytes', 'sinceSeconds'].map(readNumber)
  const sinceTime = query.get('sinceTime')
  const sinceMs =
    sinceSeconds === undefined ? (sinceTime ? Date.parse(sinceTime) : undefined) : nowMs - sinceSeconds * 1_000
  const numbers = { tailLines, limitBytes, sinceMs }
  const sinceParameter = sinceSeconds === undefined ? 'sinceTime' : 'sinceSeconds'
  const invalid = Object.entries({ tailLines, limitBytes, [sinceParameter]: sinceMs }).find(
    ([, value]) => value !== undefined && !Number.isSafeInteger(Math.trunc(value)),
  )
  if (invalid) return { is: 'invalid', message: `${invalid[0]} is not valid` }
  return {
    is: 'logs',
    ...target,
    follow: isSet(query, 'follow'),
    previous: isSet(query, 'previous'),
    options: { ...numbers, timestamps: isSet(query, 'timestamps') },
  }
}

const isSet = (query: URLSearchParams, name: string): boolean => ['1', 'true'].includes(query.get(name) ?? '')

function decodeSegments(path: string): string[] | undefined {
  try {
    return path.split('/').slice(1).map(decodeURIComponent)
  } catch {
    return undefined
  }
}
