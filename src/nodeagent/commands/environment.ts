// Expands $(NAME) in a container's environment and command, as Kubernetes does: unknown names stay, $$ is a dollar sign.
// Pure; throws an error that names an unsupported source.
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'

export type Environment = Readonly<Record<string, string>>

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export function environmentOf(pod: Readonly<Pod>, container: Readonly<Container>): Environment {
  const env: Record<string, string> = {}
  if (container.envFrom?.length)
    throw new ConfigError('envFrom is not provided by this node agent. Use env with values')
  for (const { name, value, valueFrom } of container.env ?? []) {
    if (!valueFrom) env[name] = expanded(value ?? '', env)
    else if (valueFrom.fieldRef) env[name] = fieldOf(pod, valueFrom.fieldRef.fieldPath)
    else throw new ConfigError(`env ${name}: only values and fieldRef are provided by this node agent`)
  }
  return env
}

/** Command and arguments; empty for a container without a command, which only its image defines. */
export function commandOf({ command = [], args = [] }: Readonly<Container>, env: Environment): string[] {
  return command.length === 0 ? [] : [...command, ...args].map((word) => expanded(word, env))
}

export const expanded = (text: string, env: Environment): string =>
  text.replace(/\$\$|\$\(([^()]*)\)/g, (whole, name?: string) => {
    if (name === undefined) return '$'
    return Object.hasOwn(env, name) ? env[name]! : whole
  })

const FIELDS: Readonly<Record<string, (pod: Readonly<Pod>) => string | undefined>> = {
  'metadata.name': ({ metadata }) => metadata.name,
  'metadata.namespace': ({ metadata }) => metadata.namespace,
  'metadata.uid': ({ metadata }) => metadata.uid,
  'spec.nodeName': ({ spec }) => spec?.nodeName,
  'spec.serviceAccountName': ({ spec }) => spec?.serviceAccountName,
  'status.hostIP': ({ status }) => status?.hostIP,
}

function fieldOf(pod: Readonly<Pod>, path: string): string {
  const quoted = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path)
  if (quoted) return pod.metadata[quoted[1] as 'labels' | 'annotations']?.[quoted[2]!] ?? ''
  if (!Object.hasOwn(FIELDS, path)) throw new ConfigError(`the field ${path} is not provided by this node agent`)
  return FIELDS[path]!(pod) ?? ''
}
