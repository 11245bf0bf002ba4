"""Python processors of Alibaba Cloud PAI-EAS."""
