// Entry point of the quota controller, which computes and verifies the usage of ResourceQuotas.
export { createQuotaMetrics, type QuotaMetrics } from './metrics.ts'
export { createQuotaController, type QuotaControllerOptions } from './quota-controller.ts'
