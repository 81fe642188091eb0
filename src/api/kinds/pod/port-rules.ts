// Validates the ports of containers: number ranges, names, and unique host ports.
import type { FieldErrors } from '../../field-errors.ts'
import type { Container } from './container-schema.ts'

const PROTOCOLS = ['SCTP', 'TCP', 'UDP']

/** Validates a port number or a port name. */
export function validatePort(port: number | string, field: string, errors: FieldErrors): void {
  errors.invalidAll(field, port, typeof port === 'number' ? portNumberProblems(port) : portNameProblems(port))
}

export function validatePorts(ports: Container['ports'], field: string, errors: FieldErrors): void {
  const names = new Set<string>()
  for (const [index, port] of (ports ?? []).entries()) {
    const at = `${field}[${index}]`
    if (port.name) {
      const problems = portNameProblems(port.name)
      errors.invalidAll(`${at}.name`, port.name, problems)
      if (names.has(port.name)) errors.duplicate(`${at}.name`, port.name)
      if (problems.length === 0) names.add(port.name)
    }
    if (port.containerPort === 0) errors.required(`${at}.containerPort`)
    else validatePort(port.containerPort, `${at}.containerPort`, errors)
    if (port.hostPort) validatePort(port.hostPort, `${at}.hostPort`, errors)
    if (!port.protocol) errors.required(`${at}.protocol`)
    else if (!PROTOCOLS.includes(port.protocol)) errors.notSupported(`${at}.protocol`, port.protocol, PROTOCOLS)
  }
}

/** Containers that run at the same time share the ports of the node. */
export function validateHostPorts(containers: readonly Container[], field: string, errors: FieldErrors): void {
  const taken = new Set<string>()
  for (const [nth, { ports = [] }] of containers.entries()) {
    for (const [index, { protocol, hostIP = '', hostPort }] of ports.entries()) {
      if (!hostPort) continue
      const key = `${protocol}/${hostIP}/${hostPort}`
      if (taken.has(key)) errors.duplicate(`${field}[${nth}].ports[${index}].hostPort`, key)
      taken.add(key)
    }
  }
}

const portNumberProblems = (port: number): string[] =>
  port >= 1 && port <= 65_535 ? [] : ['must be between 1 and 65535, inclusive']

function portNameProblems(name: string): string[] {
  const problems: string[] = []
  if (name.length > 15) problems.push('must be no more than 15 characters')
  if (!/^[-a-z0-9]+$/.test(name)) {
    problems.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)')
  }
  if (!/[a-z]/.test(name)) problems.push('must contain at least one letter (a-z)')
  if (name.includes('--')) problems.push('must not contain consecutive hyphens')
  if (name.startsWith('-') || name.endsWith('-')) problems.push('must not begin or end with a hyphen')
  return problems
}
