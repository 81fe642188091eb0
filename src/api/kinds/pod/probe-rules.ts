// Validates the probes and lifecycle hooks of a container, which must have exactly one handler each.
import type { FieldErrors } from '../../field-errors.ts'
import type { Infer } from '../../schema.ts'
import type { Container, httpGetAction, lifecycle, lifecycleHandler, probe } from './container-schema.ts'
import { validatePort } from './port-rules.ts'

type Probe = Infer<typeof probe>
type Handler = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'> & Infer<typeof lifecycleHandler>

export interface HandlerContext {
  /** Path of the container, probe or hook. */
  readonly field: string
  /** The grace period of the pod, which is the upper bound of a sleep hook. */
  readonly gracePeriodSeconds: number | undefined
}

export function validateProbes(container: Container, context: HandlerContext, errors: FieldErrors): void {
  const { livenessProbe, readinessProbe, startupProbe } = container
  const { field, gracePeriodSeconds } = context
  for (const [name, probe] of [
    ['livenessProbe', livenessProbe],
    ['startupProbe', startupProbe],
  ] as const) {
    if (!probe) continue
    validateProbe(probe, { field: `${field}.${name}`, gracePeriodSeconds }, errors)
    const threshold = probe.successThreshold ?? 0
    if (threshold !== 1) errors.invalid(`${field}.${name}.successThreshold`, threshold, 'must be 1')
  }
  if (!readinessProbe) return
  validateProbe(readinessProbe, { field: `${field}.readinessProbe`, gracePeriodSeconds }, errors)
  const probeGracePeriod = readinessProbe.terminationGracePeriodSeconds
  if (probeGracePeriod !== undefined) {
    errors.invalid(
      `${field}.readinessProbe.terminationGracePeriodSeconds`,
      probeGracePeriod,
      'must not be set for readinessProbes',
    )
  }
}

export function validateLifecycle(
  { postStart, preStop }: Infer<typeof lifecycle>,
  { field, gracePeriodSeconds }: HandlerContext,
  errors: FieldErrors,
): void {
  if (postStart) validateHandler(postStart, { field: `${field}.lifecycle.postStart`, gracePeriodSeconds }, errors)
  if (preStop) validateHandler(preStop, { field: `${field}.lifecycle.preStop`, gracePeriodSeconds }, errors)
}

const NUMERIC_FIELDS = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const

function validateProbe(probe: Probe, context: HandlerContext, errors: FieldErrors): void {
  validateHandler(probe, context, errors)
  for (const name of NUMERIC_FIELDS) {
    const value = probe[name] ?? 0
    if (value < 0) errors.invalid(`${context.field}.${name}`, value, 'must be greater than or equal to 0')
  }
  const seconds = probe.terminationGracePeriodSeconds
  if (seconds !== undefined && seconds <= 0) {
    errors.invalid(`${context.field}.terminationGracePeriodSeconds`, seconds, 'must be greater than 0')
  }
}

const HANDLER_TYPES = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const

function validateHandler(handler: Handler, { field, gracePeriodSeconds }: HandlerContext, errors: FieldErrors): void {
  const [type, ...extraTypes] = HANDLER_TYPES.filter((name) => handler[name] !== undefined)
  if (type === undefined) errors.required(field, 'must specify a handler type')
  for (const extraType of extraTypes)
    errors.forbidden(`${field}.${extraType}`, 'may not specify more than 1 handler type')
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler
  if (type === 'exec' && !exec?.command?.length) errors.required(`${field}.exec.command`)
  if (type === 'httpGet' && httpGet) validateHttpGet(httpGet, `${field}.httpGet`, errors)
  if (type === 'tcpSocket' && tcpSocket) validatePort(tcpSocket.port, `${field}.tcpSocket.port`, errors)
  if (type === 'grpc' && grpc) validatePort(grpc.port, `${field}.grpc.port`, errors)
  if (type === 'sleep' && sleep && gracePeriodSeconds !== undefined) {
    if (sleep.seconds < 0 || sleep.seconds > gracePeriodSeconds) {
      errors.invalid(
        `${field}.sleep`,
        sleep.seconds,
        `must be non-negative and less than terminationGracePeriodSeconds (${gracePeriodSeconds})`,
      )
    }
  }
}

const SCHEMES = ['HTTP', 'HTTPS']

function validateHttpGet(action: Infer<typeof httpGetAction>, field: string, errors: FieldErrors): void {
  if (!action.path) errors.required(`${field}.path`)
  validatePort(action.port, `${field}.port`, errors)
  const scheme = action.scheme ?? ''
  if (!SCHEMES.includes(scheme)) errors.notSupported(`${field}.scheme`, scheme, SCHEMES)
  for (const { name } of action.httpHeaders ?? []) {
    if (!/^[-A-Za-z0-9]+$/.test(name)) {
      errors.invalid(
        `${field}.httpHeaders`,
        name,
        "a valid HTTP header must consist of alphanumeric characters or '-' " +
          "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
      )
    }
  }
}
