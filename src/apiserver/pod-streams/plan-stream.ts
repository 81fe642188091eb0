// Plans a request for a pod's logs or for a command in a pod: checks the parameters, chooses the container, and returns the
// path for the node agent. Pure. The status codes and most messages are those of Kubernetes.
import { FieldErrors } from '../../api/field-errors.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { badRequest, invalid } from '../../api/status-error.ts'

/** The pod subresources that stream to or from a container. */
export type StreamSubresource = 'attach' | 'exec' | 'log'

export const isStreamSubresource = (name: string): name is StreamSubresource => ['attach', 'exec', 'log'].includes(name)

export interface StreamPlan {
  readonly nodeName: string
  /** The path and query for the node's agent. */
  readonly path: string
}

/** Returns undefined for the log of a pod without a node, which is empty. Throws 400 and 422. */
export function planStream(
  pod: Readonly<Pod>,
  subresource: StreamSubresource,
  query: URLSearchParams,
): StreamPlan | undefined {
  if (subresource === 'log') checkLogOptions(query)
  const { namespace = '', name = '' } = pod.metadata
  const container = chooseContainer(pod, query.get('container') ?? '')
  const nodeName = pod.spec?.nodeName
  if (!nodeName) {
    if (subresource === 'log') return undefined
    throw badRequest(`pod ${name} does not have a host assigned`)
  }
  const agentQuery = AGENT_QUERIES[subresource](query)
  const path = [AGENT_PATHS[subresource], namespace, name, container]
  return { nodeName, path: `/${path.map(encodeURIComponent).join('/')}?${agentQuery}` }
}

const AGENT_PATHS: Readonly<Record<StreamSubresource, string>> = {
  attach: 'attach',
  exec: 'exec',
  log: 'containerLogs',
}

/** Returns the container's name. Throws 400 if it is ambiguous or unknown. */
function chooseContainer({ metadata, spec }: Readonly<Pod>, requestedName: string): string {
  const names = (containers: readonly { readonly name: string }[] = []) => containers.map(({ name }) => name)
  const mainNames = names(spec?.containers)
  const allNames = [...mainNames, ...names(spec?.initContainers), ...names(spec?.ephemeralContainers)]
  if (requestedName === '') {
    if (mainNames.length === 1) return mainNames[0]!
    throw badRequest(
      `a container name must be specified for pod ${metadata.name}, choose one of: [${allNames.join(' ')}]`,
    )
  }
  if (allNames.includes(requestedName)) return requestedName
  throw badRequest(`container ${requestedName} is not valid for pod ${metadata.name}`)
}

/** The agent's parameters have other names than those of the API. */
const AGENT_QUERIES: Readonly<Record<StreamSubresource, (query: URLSearchParams) => URLSearchParams>> = {
  attach: commandQuery,
  exec(query) {
    const command = query.getAll('command')
    if (command.length === 0) throw badRequest('you must specify at least one command for the container')
    const result = commandQuery(query)
    for (const argument of command) result.append('command', argument)
    return result
  },
  log: (query) => {
    const names = ['follow', 'previous', 'timestamps', 'sinceSeconds', 'sinceTime', 'tailLines', 'limitBytes']
    const result = new URLSearchParams()
    for (const name of names) {
      const value = query.get(name)
      if (value) result.set(name, BOOLEAN_LOG_OPTIONS.includes(name) ? String(isTrue(value)) : value)
    }
    return result
  },
}

const BOOLEAN_LOG_OPTIONS = ['follow', 'previous', 'timestamps']

function commandQuery(query: URLSearchParams): URLSearchParams {
  const isSet = (name: string): boolean => isTrue(query.get(name) ?? '')
  const streams = [
    ['stdin', 'input'],
    ['stdout', 'output'],
    ['stderr', 'error'],
  ].filter(([name]) => isSet(name!))
  if (streams.length === 0) throw badRequest('you must specify at least 1 of stdin, stdout, stderr')
  const names = [...streams.map(([, agentName]) => agentName!), ...(isSet('tty') ? ['tty'] : [])]
  return new URLSearchParams(Object.fromEntries(names.map((name) => [name, '1'])))
}

const isTrue = (text: string): boolean => /^(1|t|true)$/i.test(text)

/** Throws 400 for text that is not a number, and 422 for options that are out of range or exclude each other. */
function checkLogOptions(query: URLSearchParams): void {
  const errors = new FieldErrors()
  const checkNumber = (name: string, minimum: number) => {
    const text = query.get(name)
    if (!text) return
    if (!/^-?\d+$/.test(text))
      throw badRequest(`the parameter ${name} must be a whole number, not ${JSON.stringify(text)}`)
    const rule = minimum === 0 ? 'must be greater than or equal to 0' : 'must be greater than 0'
    if (Number(text) < minimum) errors.invalid(name, Number(text), rule)
  }
  checkNumber('tailLines', 0)
  checkNumber('limitBytes', 1)
  checkNumber('sinceSeconds', 1)
  const sinceTime = query.get('sinceTime')
  if (sinceTime && Number.isNaN(Date.parse(sinceTime))) {
    throw badRequest(`the parameter sinceTime must be a time in RFC 3339, not ${JSON.stringify(sinceTime)}`)
  }
  if (sinceTime && query.get('sinceSeconds')) {
    errors.forbidden('', 'at most one of `sinceTime` or `sinceSeconds` may be specified')
  }
  if (query.has('stream')) errors.forbidden('stream', 'may not be specified')
  if (errors.list.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, '', errors.list)
}
