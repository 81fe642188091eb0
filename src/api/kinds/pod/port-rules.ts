// Validates the numbers, names and protocols of container ports, and that host ports are unique.
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
    const path = `${field}[${index}]`
    if (port.name) {
      const problems = portNameProblems(port.name)
      errors.invalidAll(`${path}.name`, port.name, problems)
      if (names.has(port.name)) errors.duplicate(`${path}.name`, port.name)
      if (problems.length === 0) names.add(port.name)
    }
    if (port.containerPort === 0) errors.required(`${path}.containerPort`)
    else validatePort(port.containerPort, `${path}.containerPort`, errors)
    if (port.hostPort) validatePort(port.hostPort, `${path}.hostPort`, errors)
    if (!port.protocol) errors.required(`${path}.protocol`)
    else if (!PROTOCOLS.includes(port.protocol)) errors.notSupported(`${path}.protocol`, port.protocol, PROTOCOLS)
  }
}

/** Validates that the host ports of containers that run at the same time are unique. */
export function validateHostPorts(containers: readonly Container[], field: string, errors: FieldErrors): void {
  const usedPorts = new Set<string>()
  for (const [containerIndex, { ports = [] }] of containers.entries()) {
    for (const [index, { protocol, hostIP = '', hostPort }] of ports.entries()) {
      if (!hostPort) continue
      const key = `${protocol}/${hostIP}/${hostPort}`
      if (usedPorts.has(key)) errors.duplicate(`${field}[${containerIndex}].ports[${index}].hostPort`, key)
      usedPorts.add(key)
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
