// Computes the environment and the command of a container. Expands $(NAME) as Kubernetes does: references to unknown names
// are kept, and $$ is an escaped dollar sign. Throws a ConfigError for a source that is not supported.
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'

export type Environment = Readonly<Record<string, string>>

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** `base` contains the variables of every container. The container can override them. */
export function environmentOf(pod: Readonly<Pod>, container: Readonly<Container>, base: Environment = {}): Environment {
  const env: Record<string, string> = { ...base }
  if (container.envFrom?.length)
    throw new ConfigError('envFrom is not supported by this node agent; use env with values')
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (!valueFrom) env[name] = expandVariables(value ?? '', env)
    else if (valueFrom.fieldRef) env[name] = fieldOf(pod, valueFrom.fieldRef.fieldPath)
    else throw new ConfigError(`env ${name}: only values and fieldRef are supported by this node agent`)
  }
  return env
}

/** Returns the command and its arguments, or an empty array if the command is defined by the image only. */
export function commandOf({ command = [], args = [] }: Readonly<Container>, env: Environment): string[] {
  return command.length === 0 ? [] : [...command, ...args].map((argument) => expandVariables(argument, env))
}

export const expandVariables = (text: string, env: Environment): string =>
  text.replace(/\$\$|\$\(([^()]*)\)/g, (whole, name?: string) => {
    if (name === undefined) return '$'
    return Object.hasOwn(env, name) ? env[name]! : whole
  })

const FIELDS: Readonly<Record<string, (pod: Readonly<Pod>) => string | undefined>> = {
  'metadata.name': ({ metadata }) => metadata.name,
  'metadata.namespace': ({ metadata }) => metadata.namespace,
  'metadata.uid': ({ metadata }) => metadata.uid,
  'metadata.labels': ({ metadata }) => formatMap(metadata.labels),
  'metadata.annotations': ({ metadata }) => formatMap(metadata.annotations),
  'spec.nodeName': ({ spec }) => spec?.nodeName,
  'spec.serviceAccountName': ({ spec }) => spec?.serviceAccountName,
  'status.hostIP': ({ status }) => status?.hostIP,
}

/** Returns a field of the pod as text; a map as lines `key="value"`. */
export function fieldOf(pod: Readonly<Pod>, path: string): string {
  const match = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path)
  if (match) return pod.metadata[match[1] as 'labels' | 'annotations']?.[match[2]!] ?? ''
  if (!Object.hasOwn(FIELDS, path)) throw new ConfigError(`the field ${path} is not supported by this node agent`)
  return FIELDS[path]!(pod) ?? ''
}

const formatMap = (entries: Readonly<Record<string, string>> = {}): string =>
  Object.keys(entries)
    .sort()
    .map((key) => `${key}=${JSON.stringify(entries[key])}`)
    .join('\n')
